package grants

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// PipelinesName names what lets pipelines show what is in a cluster. It is apart from what joining applies whole, so that it can be taken back.
func PipelinesName(logical types.UID) string { return Name(logical) + "-pipelines" }

// ForPipelines returns what lets pipelines show what is in a cluster.
func ForPipelines(logical types.UID) ([]Piece, error) { return assemble(pipelines(logical)...) }

func pipelines(logical types.UID) []row {
	meta := metav1.ObjectMeta{Name: PipelinesName(logical), Labels: Labels()}
	return []row{
		clusterRole(meta, rights.Pipelines(), "What it may read for pipelines, by --allow-pipelines. It writes nothing of that."),
		clusterRoleBinding(meta, logical),
	}
}
