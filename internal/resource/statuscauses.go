package resource

import (
	"strings"

	"orch.io/controlplane/api/meta"
)

// BelowStatus rewrites the causes of a write of the status as clients of definitions know
// them: the field of a cause is the whole path, and the message names the path below the
// status, as in status.addresses[0].value: addresses[0].value in body must be of type string.
func BelowStatus(causes []meta.StatusCause) {
	for i := range causes {
		c := &causes[i]
		if c.Field == "<nil>" { // the message alone says where
			message := strings.NewReplacer(`"status.`, `"`, `"status"`, `""`, " in status.", " in ").Replace(c.Message)
			if message != c.Message {
				c.Field, c.Message = "status", message
			}
			continue
		}
		below, ok := strings.CutPrefix(c.Field, "status")
		if !ok {
			continue
		}
		if at := strings.LastIndex(c.Message, c.Field+" in body"); at >= 0 {
			c.Message = c.Message[:at] + strings.TrimPrefix(below, ".") + c.Message[at+len(c.Field):]
		}
	}
}
