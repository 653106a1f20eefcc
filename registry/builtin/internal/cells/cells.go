// Package cells writes values as the columns of several kinds show them.
package cells

import (
	"strconv"
	"strings"
)

// FirstFew is a list as a column shows it, the first words and how many more
// there are.
func FirstFew(list []string) string {
	const few = 3
	if len(list) <= few {
		return strings.Join(list, ",")
	}
	return strings.Join(list[:few], ",") + " + " + strconv.Itoa(len(list)-few) + " more..."
}
