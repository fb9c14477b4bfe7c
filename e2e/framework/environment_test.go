package framework

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestALackedRightIsAnError(t *testing.T) {
	log := filepath.Join(t.TempDir(), "manifold.log")
	lacking := `E1123 08:00:00.000000 1 authorizer.go:95] "` + lacksRight + `" user="system:manifold:controller:drain" verb="delete" resource="pods"`
	for text, want := range map[string]string{
		"I1123 08:00:00.000000 1 server.go:30] \"Starting\"\n":                  "",
		"I1123 08:00:00.000000 1 server.go:30] \"Starting\"\n" + lacking + "\n": lacking,
	} {
		if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := lackedRights(log)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
