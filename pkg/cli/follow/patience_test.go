package follow

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestPatience(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want Patience
		err  string
	}{
		"nothing is waited for by default": {},
		"for as long as it takes":          {args: []string{"--wait"}, want: Patience{Wait: true}},
		"for some time":                    {args: []string{"--wait", "--timeout=2m"}, want: Patience{Wait: true, Timeout: 2 * time.Minute}},
		"a time without a wait":            {args: []string{"--timeout=2m"}, err: "--timeout is for --wait"},
		"a negative time":                  {args: []string{"--wait", "--timeout=-1s"}, err: "--timeout must not be less than zero, but is -1s"},
	} {
		t.Run(name, func(t *testing.T) {
			var got Patience
			cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return got.Validate() }}
			got.AddFlags(cmd, "Wait for it.", "it takes")
			cmd.SetArgs(test.args)
			cmd.SetOut(io.Discard)
			err := cmd.Execute()
			if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if err == nil && got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if usage := cmd.Flags().Lookup("timeout").Usage; !strings.HasSuffix(usage, "Zero is for as long as it takes.") {
				t.Errorf("the usage is %q", usage)
			}
		})
	}
}
