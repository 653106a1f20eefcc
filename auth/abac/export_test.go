package abac

type Policy = policy

func New(policies ...Policy) *Authorizer { return &Authorizer{policies} }
