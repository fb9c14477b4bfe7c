package limits

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestBoundsOfClusters(t *testing.T) {
	for name, test := range map[string]struct {
		args           []string
		objects, bytes int64
		wrong          bool
	}{
		"by default they are generous": {objects: 300_000, bytes: 512 << 20},
		"flags set them":               {args: []string{"--max-cluster-objects=10", "--max-cluster-bytes=1Gi"}, objects: 10, bytes: 1 << 30},
		"0 is for any number":          {args: []string{"--max-cluster-objects=0", "--max-cluster-bytes=0"}},
		"they are not negative":        {args: []string{"--max-cluster-bytes=-1"}, objects: 300_000, bytes: -1, wrong: true},
		"neither of them":              {args: []string{"--max-cluster-objects=-1"}, objects: -1, bytes: 512 << 20, wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			bounds := DefaultBounds()
			flags := pflag.NewFlagSet("manifold", pflag.ContinueOnError)
			bounds.AddFlags(flags)
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			if bounds.Objects != test.objects || bounds.Bytes.Value() != test.bytes {
				t.Errorf("%d objects and %d bytes, want %d and %d", bounds.Objects, bounds.Bytes.Value(), test.objects, test.bytes)
			}
			if err := bounds.Validate(); (err != nil) != test.wrong {
				t.Errorf("error %v, want one %t", err, test.wrong)
			}
		})
	}
}
