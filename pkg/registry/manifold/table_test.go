package manifold

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/registry/group/grouptest"
)

var api = grouptest.API{Install: v1alpha1.Install, Group: Group}

func TestTables(t *testing.T) {
	api.CheckTables(t, map[string]rest.TableConvertor{
		"testdata/clusters.txt":                 clusterColumns(),
		"testdata/placementpolicies.txt":        placementPolicyColumns(),
		"testdata/clusterplacementpolicies.txt": clusterPlacementPolicyColumns(),
	})
}

func TestCellsAreOneLineThatDoesNothingToATerminal(t *testing.T) {
	cluster := &v1alpha1.Cluster{Status: v1alpha1.ClusterStatus{KubernetesVersion: "v1\n\x1b[2J\u009bb\xff"}}
	table, err := clusterColumns().ConvertToTable(t.Context(), cluster, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := table.Rows[0].Cells[3], `v1 ^[[2J\u009bb\xff`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTableCarriesWhatPagingAndWatchingNeed(t *testing.T) {
	left := int64(3)
	list := &v1alpha1.ClusterList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "next", RemainingItemCount: &left}}
	table, err := clusterColumns().ConvertToTable(t.Context(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	if table.ResourceVersion != "9" || table.Continue != "next" || *table.RemainingItemCount != 3 {
		t.Errorf("list metadata %+v, want the list's", table.ListMeta)
	}

	created := metav1.NewTime(time.Now().Add(-49 * time.Hour))
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", ResourceVersion: "7", CreationTimestamp: created}}
	table, err = clusterColumns().ConvertToTable(t.Context(), cluster, &metav1.TableOptions{NoHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	if table.ResourceVersion != "7" || len(table.ColumnDefinitions) != 0 || len(table.Rows) != 1 {
		t.Errorf("version %q, %d headers, %d rows, want 7, none and 1",
			table.ResourceVersion, len(table.ColumnDefinitions), len(table.Rows))
	}
	if got := table.Rows[0].Cells[7]; got != "2d1h" {
		t.Errorf("age %v, want 2d1h", got)
	}
}

func TestTableRefusesAnotherKind(t *testing.T) {
	if _, err := clusterColumns().ConvertToTable(t.Context(), &v1alpha1.PlacementPolicy{}, nil); err == nil {
		t.Error("a policy was shown in the columns of clusters")
	}
}

func TestQuantities(t *testing.T) {
	for name, test := range map[string]struct {
		quantity, cores, bytes string
	}{
		"nothing":                             {"0", "0", "0"},
		"a part of a core":                    {"250m", "0.25", "0.2"},
		"cores and a part":                    {"1500m", "1.5", "1.5"},
		"whole tens keep their zeros":         {"100", "100", "100"},
		"bytes that fill a unit exactly":      {"1Gi", "1073741824", "1Gi"},
		"bytes that fill a part of a unit":    {"1536Mi", "1610612736", "1.5Gi"},
		"bytes just below a unit":             {"1023Ki", "1047552", "1023Ki"},
		"memory as nodes report it":           {"8145412Ki", "8340901888", "7.8Gi"},
		"more memory than one machine has":    {"3Pi", "3377699720527872", "3Pi"},
		"more than the largest unit there is": {"2Ei", "2305843009213693952", "2048Pi"},
	} {
		t.Run(name, func(t *testing.T) {
			quantity := resource.MustParse(test.quantity)
			if got := cores(quantity); got != test.cores {
				t.Errorf("cores(%s) = %s, want %s", test.quantity, got, test.cores)
			}
			if got := bytes(quantity); got != test.bytes {
				t.Errorf("bytes(%s) = %s, want %s", test.quantity, got, test.bytes)
			}
		})
	}
}
