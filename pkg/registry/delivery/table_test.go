package delivery

import (
	"testing"

	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/pkg/registry/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/registry/group"
)

func TestTables(t *testing.T) {
	api.CheckTables(t, map[string]rest.TableConvertor{
		"testdata/applications.txt": applicationColumns(),
		"testdata/revisions.txt":    revisionColumns(),
		"testdata/releases.txt":     releaseColumns(),
		"testdata/plugins.txt":      plugins.Kind(group.Strategy{}).Columns,
	})
}
