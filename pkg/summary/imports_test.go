package summary

import (
	"go/build"
	"slices"
	"strings"
	"testing"
)

// TestThePackageStaysPure lists what it may import. A client, a lister or a clock in here would have to be faked by every test.
func TestThePackageStaysPure(t *testing.T) {
	allowed := []string{
		"github.com/manifold-dev/manifold/apis/", "github.com/manifold-dev/manifold/pkg/placement",
		"github.com/manifold-dev/manifold/pkg/projection", "github.com/manifold-dev/manifold/internal/text", "k8s.io/api/", "k8s.io/apimachinery/", "k8s.io/utils/",
	}
	forbidden := []string{"context", "net", "net/http", "os", "sync", "time", "math/rand"}
	pkg, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pkg.Imports {
		external := strings.Contains(path, ".")
		ok := slices.ContainsFunc(allowed, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
		if (external && !ok) || slices.Contains(forbidden, path) {
			t.Errorf("imports %s, want a pure package", path)
		}
	}
}
