package claims

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	api "k8s.io/kubernetes/pkg/apis/core"
	claimstrategy "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// claimIn is a volume claim as the logical cluster stores it: the mirror of one in a cluster, or the user's own if there is none.
func claimIn(cluster string, changes ...func(*api.PersistentVolumeClaim)) *api.PersistentVolumeClaim {
	class := "fast"
	claim := &api.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "data-db-0", UID: "uid-below", ResourceVersion: "7",
			Finalizers: []string{"kubernetes.io/pvc-protection", v1alpha1.FinalizerProjection},
		},
		Spec: api.PersistentVolumeClaimSpec{
			AccessModes: []api.PersistentVolumeAccessMode{api.ReadWriteOnce}, StorageClassName: &class, VolumeName: "pv-1",
			Resources: api.VolumeResourceRequirements{Requests: api.ResourceList{api.ResourceStorage: resource.MustParse("1Gi")}},
		},
		Status: api.PersistentVolumeClaimStatus{Phase: api.ClaimBound, Capacity: api.ResourceList{api.ResourceStorage: resource.MustParse("1Gi")}},
	}
	if cluster != "" {
		claim.Annotations = map[string]string{v1alpha1.AnnotationCluster: cluster}
	}
	for _, change := range changes {
		change(claim)
	}
	return claim
}

func sized(amount string) func(*api.PersistentVolumeClaim) {
	return func(c *api.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[api.ResourceStorage] = resource.MustParse(amount)
	}
}

func TestSyncerReportsClaimsAsTheyAreBelow(t *testing.T) {
	ctx, _ := storagetest.As(t, storagetest.EastSyncer)
	claim := claimIn("east")
	claim.UID = "made-above"
	claim.Annotations[v1alpha1.AnnotationUID], claim.Annotations[v1alpha1.AnnotationCreated] = "uid-below", "2026-11-20T12:00:00Z"
	claimStrategy{claimstrategy.Strategy}.PrepareForCreate(ctx, claim)
	if claim.UID != "uid-below" || claim.CreationTimestamp.UTC().Format(time.RFC3339) != "2026-11-20T12:00:00Z" || claim.Status.Phase != api.ClaimBound {
		t.Errorf("UID %s, created %s, phase %s", claim.UID, claim.CreationTimestamp, claim.Status.Phase)
	}
	if len(claim.Annotations) != 1 {
		t.Errorf("annotations %v, want the cluster's name alone", claim.Annotations)
	}
}

func TestACopyOfAMirrorIsAClaimOfItsOwn(t *testing.T) {
	ctx, seen := storagetest.As(t, "jane")
	claim := claimIn("east")
	claimStrategy{claimstrategy.Strategy}.PrepareForCreate(ctx, claim)
	if mirroredClaim(claim) || claim.Status.Phase != "" {
		t.Errorf("annotations %v, phase %s: it passes for a mirror", claim.Annotations, claim.Status.Phase)
	}
	if len(seen.Texts) != 1 || !strings.Contains(seen.Texts[0], v1alpha1.AnnotationCluster) {
		t.Errorf("warnings %q", seen.Texts)
	}
}

func TestWhoMayReportAndChangeMirroredClaims(t *testing.T) {
	owned := func(c *api.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "db-0", UID: "x"}}
	}
	operated := func(c *api.PersistentVolumeClaim) {
		c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{APIVersion: "db.example.com/v1", Kind: "Database", Name: "db", UID: "y"})
	}
	going := func(c *api.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	free := func(c *api.PersistentVolumeClaim) { c.Finalizers = nil }
	mode := func(c *api.PersistentVolumeClaim) {
		c.Spec.AccessModes = []api.PersistentVolumeAccessMode{api.ReadWriteMany}
	}
	for name, test := range map[string]struct {
		who         string
		old, object *api.PersistentVolumeClaim // old is nil for a new claim
		want        string                     // the field that the error is about; "" for none
	}{
		"a syncer reports a claim of its own cluster":          {storagetest.EastSyncer, nil, claimIn("east"), ""},
		"a syncer updates a claim of its own cluster":          {storagetest.EastSyncer, claimIn("east"), claimIn("east", mode), ""},
		"a syncer may not report another cluster's claim":      {storagetest.EastSyncer, nil, claimIn("west"), "metadata.annotations[manifold.dev/cluster]"},
		"a syncer may not turn a user's claim into a mirror":   {storagetest.EastSyncer, claimIn(""), claimIn("east"), "metadata.annotations[manifold.dev/cluster]"},
		"a syncer may not change another cluster's mirror":     {storagetest.EastSyncer, claimIn("west"), claimIn("east"), "metadata.annotations[manifold.dev/cluster]"},
		"a syncer may let go of one that is being deleted":     {storagetest.EastSyncer, claimIn("west", going), claimIn("west", going, free), ""},
		"a mirror carries the UID of its claim":                {storagetest.EastSyncer, nil, claimIn("east", func(c *api.PersistentVolumeClaim) { c.UID = "" }), "metadata.annotations[manifold.dev/uid]"},
		"a user may ask for more room":                         {"jane", claimIn("east"), claimIn("east", sized("2Gi")), ""},
		"a user may not ask for less":                          {"jane", claimIn("east"), claimIn("east", sized("1Mi")), "spec.resources.requests.storage"},
		"a user may not change the rest":                       {"jane", claimIn("east"), claimIn("east", mode), "spec"},
		"a user may not choose a pod as owner":                 {"jane", claimIn("east"), claimIn("east", owned), "metadata.ownerReferences"},
		"an operator may choose an object of its own":          {"jane", claimIn("east", owned), claimIn("east", owned, operated), ""},
		"the garbage collector may take owners away":           {user.APIServerUser, claimIn("east", owned), claimIn("east"), ""},
		"a user may choose the owner of a claim of the user's": {"jane", claimIn(""), claimIn("", owned), ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, _ := storagetest.As(t, test.who)
			s := claimStrategy{claimstrategy.Strategy}
			var fields []string
			if test.old == nil {
				for _, err := range s.Validate(ctx, test.object) {
					fields = append(fields, err.Field)
				}
			} else {
				for _, err := range s.ValidateUpdate(ctx, test.object, test.old) {
					fields = append(fields, err.Field)
				}
			}
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			if !slices.Equal(fields, want) {
				t.Errorf("errors about %v, want %v", fields, want)
			}
		})
	}
}

func TestTheMarkOfAMirroredClaimStays(t *testing.T) {
	ctx, _ := storagetest.As(t, "jane")
	old, claim := claimIn("east"), claimIn("")
	claimStrategy{claimstrategy.Strategy}.PrepareForUpdate(ctx, claim, old)
	if clusterOfClaim(claim) != "east" {
		t.Errorf("annotations %v: a manifest without the mark has taken it away", claim.Annotations)
	}
}

func TestClaimPatchIsTheDifferenceAlone(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*api.PersistentVolumeClaim)
		want   string
	}{
		"more room": {sized("2Gi"), `{"metadata":{"uid":"uid-below"},"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`},
		"a label": {func(c *api.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} },
			`{"metadata":{"labels":{"a":"b"},"uid":"uid-below"}}`},
		"a finalizer taken away": {func(c *api.PersistentVolumeClaim) { c.Finalizers = []string{v1alpha1.FinalizerProjection} },
			`{"metadata":{"finalizers":null,"uid":"uid-below"}}`},
		"ours alone taken away": {func(c *api.PersistentVolumeClaim) { c.Finalizers = c.Finalizers[:1] }, `{"metadata":{"uid":"uid-below"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := claimPatch(claimIn("east"), claimIn("east", test.change))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("patch %s\nwant  %s", got, test.want)
			}
		})
	}
}

func TestManifoldNamesTheVolumeOfAClaim(t *testing.T) {
	shows := func(volume string) func(*api.PersistentVolumeClaim) {
		return func(c *api.PersistentVolumeClaim) {
			c.Spec.VolumeName = volume
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationStatus, `{"east":{"volume":"`+volume+`"}}`)
		}
	}
	asks := func(volume string) func(*api.PersistentVolumeClaim) {
		return func(c *api.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
	}
	for name, test := range map[string]struct {
		status   bool // Manifold writes it
		old, now func(*api.PersistentVolumeClaim)
		want     string
		refused  bool
	}{
		"when it is bound":                       {true, asks(""), shows("pv-1"), "pv-1", false},
		"when another cluster has it":            {true, shows("pv-1"), shows("pv-2"), "pv-2", false},
		"when no cluster has it":                 {true, shows("pv-1"), asks(""), "", false},
		"but not when its user asks for one":     {true, asks("mine"), shows("pv-1"), "mine", false},
		"and keeps it from who does not know it": {false, shows("pv-1"), asks(""), "pv-1", false},
		"which nobody else can change":           {false, shows("pv-1"), asks("pv-2"), "pv-2", true},
		"nor take away what a user asked for":    {false, asks("mine"), asks(""), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, _ := storagetest.As(t, "jane")
			if test.status {
				ctx, _ = storagetest.As(t, v1alpha1.SummaryUser)
				ctx = context.WithValue(ctx, namesVolumeKey{}, true)
			}
			old, claim := claimIn("", test.old), claimIn("", test.now, sized("2Gi"))
			strategy := claimStrategy{claimstrategy.Strategy}
			strategy.PrepareForUpdate(ctx, claim, old)
			if claim.Spec.VolumeName != test.want {
				t.Errorf("volume %q, want %q", claim.Spec.VolumeName, test.want)
			}
			if size := claim.Spec.Resources.Requests[api.ResourceStorage]; test.status && size.String() != "1Gi" {
				t.Errorf("a status changes the request to %s", size.String())
			}
			if errs := strategy.ValidateUpdate(ctx, claim, old); (len(errs) > 0) != test.refused {
				t.Errorf("refusals %v", errs)
			}
		})
	}
}

func TestAReportOfASyncerLeavesTheManagersOfAClaimAlone(t *testing.T) {
	ctx, _ := storagetest.As(t, storagetest.EastSyncer)
	users := []metav1.ManagedFieldsEntry{storagetest.Manages("jane", `{"f:metadata":{"f:labels":{"f:color":{}}}}`)}
	claim, before := claimIn("east"), claimIn("east")
	before.ManagedFields = users
	claim.ManagedFields = []metav1.ManagedFieldsEntry{storagetest.Manages("manifold", `{"f:metadata":{"f:labels":{"f:color":{}}}}`)}
	claimStrategy{claimstrategy.Strategy}.PrepareForUpdate(ctx, claim, before)
	if !reflect.DeepEqual(claim.ManagedFields, users) {
		t.Errorf("the managers are %v, want %v", claim.ManagedFields, users)
	}
}
