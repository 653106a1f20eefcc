package batch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzSchedule checks that a valid schedule has 5 fields or is a descriptor, and that changes of
// spaces, case and repetition of items keep it valid.
func FuzzSchedule(f *testing.F) {
	for _, s := range []string{"*/5 0 1-31 jan ?", "@every 1h", "TZ=UTC 1,2 * * * *", "CRON_TZ=UTC @daily", "1-2-3/4/5 * * * *", "-1 + 0x1 99999999999999999999 ,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checkSchedule(text) != nil || strings.Contains(text, "TZ=") || strings.HasPrefix(text, "@") {
			return
		}
		parts := strings.Fields(text)
		require.Len(t, parts, len(fields()))
		require.NoError(t, checkSchedule(" "+strings.ToLower(strings.Join(parts, "\t"))+" "))
		require.NoError(t, checkSchedule(strings.Join(parts, ", ")), "an empty item is none")
	})
}

// FuzzIndexes checks that parsed indexes are ascending, below the bound, and equal after formatting and
// parsing again.
func FuzzIndexes(f *testing.F) {
	for _, s := range []string{"", "0", "0,2-3", "3-1", "1,", "0-1-2", "00", "99999999999999999999"} {
		f.Add(s, int32(5))
	}
	f.Fuzz(func(t *testing.T, text string, below int32) {
		list, err := parseIndexes(text, below)
		if err != nil {
			return
		}
		last, parts := int32(-1), []string{}
		for _, r := range list {
			require.True(t, last < r[0] && r[0] <= r[1] && r[1] < below)
			last = r[1]
			parts = append(parts, fmt.Sprint(r[0]))
			if r[1] > r[0] {
				parts[len(parts)-1] += fmt.Sprint("-", r[1])
			}
		}
		again, err := parseIndexes(strings.Join(parts, ","), below)
		require.NoError(t, err)
		require.Equal(t, list, again)
		_, both := list.overlap(again)
		require.Equal(t, len(list) > 0, both)
	})
}
