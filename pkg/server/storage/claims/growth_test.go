package claims

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

func TestTheClustersOfAClaimSayWhetherItCanGrow(t *testing.T) {
	asked := 0
	answering := func(err error) *below.Connection {
		client := fake.NewClientset(&corev1.PersistentVolumeClaim{ObjectMeta: storagetest.MarkedBelow("data-db-0", "uid-above")})
		client.PrependReactor("patch", "persistentvolumeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
			asked++
			patch := action.(clienttesting.PatchActionImpl)
			if got := string(patch.GetPatch()); got != `{"metadata":{"uid":"uid-live"},"spec":{"resources":{"requests":{"storage":"2Gi"}}}}` || len(patch.PatchOptions.DryRun) != 1 {
				t.Errorf("asked by %s with options %+v", got, patch.PatchOptions)
			}
			return true, &corev1.PersistentVolumeClaim{}, err
		})
		return &below.Connection{Client: client}
	}
	agrees, lacks := answering(nil), answering(apierrors.NewNotFound(api.Resource("persistentvolumeclaims"), "data-db-0"))
	refuses := answering(apierrors.NewForbidden(api.Resource("persistentvolumeclaims"), "data-db-0", errors.New("its class cannot")))
	strange := answering(nil)
	strange.Client = fake.NewClientset(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-db-0"}})
	silent := answering(errors.New("connection refused"))
	for name, test := range map[string]struct {
		breakdown string
		size      string
		clusters  storagetest.Connections
		wantAsked int
		want      string // refusal
	}{
		"it can in its cluster":              {`{"east":{}}`, "2Gi", storagetest.Connections{"east": agrees}, 1, ""},
		"it can in all":                      {`{"east":{},"west":{}}`, "2Gi", storagetest.Connections{"east": agrees, "west": agrees}, 2, ""},
		"it cannot where one refuses":        {`{"east":{},"west":{}}`, "2Gi", storagetest.Connections{"east": agrees, "west": refuses}, 2, `cluster "west" refuses: `},
		"nobody knows where one is silent":   {`{"east":{}}`, "2Gi", storagetest.Connections{"east": silent}, 1, `claim shop/data-db-0 is in cluster "east", which cannot be asked`},
		"nor where one is not connected":     {`{"east":{}}`, "2Gi", storagetest.Connections{}, 0, `claim shop/data-db-0 is in cluster "east", which cannot be asked`},
		"it is not there yet":                {`{"east":{}}`, "2Gi", storagetest.Connections{"east": lacks}, 1, ""},
		"not asked is who has another claim": {`{"east":{"problem":"the name is taken"}}`, "2Gi", storagetest.Connections{"east": refuses}, 0, ""},
		"nor one that has a stranger's":      {`{"east":{}}`, "2Gi", storagetest.Connections{"east": strange}, 0, ""},
		"nobody has it":                      {"", "2Gi", storagetest.Connections{}, 0, ""},
		"it stays as it is":                  {`{"east":{}}`, "1Gi", storagetest.Connections{"east": refuses}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked = 0
			old := claimIn("", func(c *api.PersistentVolumeClaim) {
				c.UID, c.Annotations = "uid-above", map[string]string{v1alpha1.AnnotationStatus: test.breakdown}
			})
			claim := old.DeepCopy()
			sized(test.size)(claim)
			err := (&claimREST{connections: test.clusters, identity: storagetest.Known}).withGrowth(nil)(t.Context(), claim, old)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if asked != test.wantAsked {
				t.Errorf("asked %d clusters, want %d", asked, test.wantAsked)
			}
		})
	}
}

func TestClustersAreNotAskedAboutWhatIsRefusedAnyway(t *testing.T) {
	refusal := errors.New("exceeded quota")
	old := claimIn("", func(c *api.PersistentVolumeClaim) {
		c.Annotations = map[string]string{v1alpha1.AnnotationStatus: `{"east":{}}`}
	})
	claim := old.DeepCopy()
	sized("2Gi")(claim)
	validate := func(context.Context, runtime.Object, runtime.Object) error { return refusal }
	if err := (&claimREST{connections: storagetest.Connections{}}).withGrowth(validate)(t.Context(), claim, old); !errors.Is(err, refusal) {
		t.Errorf("error %v, want %v", err, refusal)
	}
}
