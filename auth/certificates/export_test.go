package certificates

var Check = check
