package carried

import (
	"cmp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/terms"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
)

const logicalCluster = "logical"

// disk is a volume of the logical cluster that is bound to the claim shop/data of some UID.
func disk(claim types.UID, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk", UID: "uid-of-disk"}}
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: claim}
	v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	for _, do := range change {
		do(v)
	}
	return v
}

func keptAbove(v *corev1.PersistentVolume) {
	v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

// noted is what is on record above of east.
func noted(phase corev1.PersistentVolumePhase) func(*corev1.PersistentVolume) {
	return func(v *corev1.PersistentVolume) {
		v.Annotations = map[string]string{v1alpha1.AnnotationStatus: summary.VolumeHolders{"east": {Phase: phase}}.String()}
	}
}

// carriedDisk is what east has of it, bound to a claim of some UID there.
func carriedDisk(t *testing.T, claim types.UID, phase corev1.PersistentVolumePhase, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	t.Helper()
	out, err := projection.CarriedVolume(disk("uid-of-data"), policy, projection.Target{LogicalCluster: logicalCluster, Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	out.UID, out.Status.Phase = "below-disk", phase
	out.Spec.ClaimRef.UID = claim
	return out
}

func dataClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "uid-of-data"}}
}

// dataBelow is its projection.
func dataBelow(t *testing.T) *corev1.PersistentVolumeClaim {
	t.Helper()
	kind, _ := projection.ForResource(identity.Claims)
	out, err := kind.Project(dataClaim(), projection.Part{}, projection.Target{LogicalCluster: logicalCluster, Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	out.SetUID("below-data")
	return out.(*corev1.PersistentVolumeClaim)
}

// upstream is a logical cluster with the claim shop/data, which is to be in a cluster or gone.
type upstream struct {
	volumes []*corev1.PersistentVolume
	claim   *corev1.PersistentVolumeClaim
	runsIn  string
}

func (u *upstream) Volume(name string) *corev1.PersistentVolume {
	for _, v := range u.volumes {
		if v.Name == name {
			return v
		}
	}
	return nil
}

func (u *upstream) VolumeNames() (names []string) {
	for _, v := range u.volumes {
		names = append(names, v.Name)
	}
	return names
}

func (u *upstream) VolumesOf(claim cache.ObjectName) (found []*corev1.PersistentVolume) {
	for _, v := range u.volumes {
		if ref := v.Spec.ClaimRef; ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name {
			found = append(found, v)
		}
	}
	return found
}

func (u *upstream) ClaimOf(volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	if ref := volume.Spec.ClaimRef; u.claim == nil || ref == nil || ref.UID != u.claim.UID {
		return nil
	}
	return u.claim
}

func (u *upstream) ClaimGoesTo(_ *corev1.PersistentVolumeClaim, cluster string) bool {
	return cluster == u.runsIn
}

// testVolumes are the volumes of a cluster that lets them in and stays, unless a test says otherwise.
type testVolumes struct {
	*Volumes
	client  *fake.Clientset
	forbids bool
	leaving string // the manner in which the cluster is removed, "-" for the usual one
}

// east is the cluster of that name, which has these claims.
func east(t *testing.T, u *upstream, claims ...*corev1.PersistentVolumeClaim) *testVolumes {
	t.Helper()
	v := &testVolumes{client: fake.NewClientset()}
	below := physical.New()
	below.Claims = informers.NewSharedInformerFactory(v.client, 0).Core().V1().PersistentVolumeClaims().Informer()
	for _, claim := range claims {
		must(t, below.Claims.GetStore().Add(claim))
	}
	v.Volumes = New(Options{
		Cluster: &trust.Cluster{
			Name: "east", LogicalCluster: logicalCluster, Below: below, States: states.New(func(identity.Key) {}, func(identity.Key) {}),
		},
		Above: u, Client: v.client, Queue: steps.NewQueue[identity.Key]("down-east", nil), Recorder: record.NewFakeRecorder(100),
		Terms: terms.Terms{
			Leaving: func() (bool, string) { return v.leaving != "", strings.TrimPrefix(v.leaving, "-") },
			Allows:  func() v1alpha1.ClusterAllows { return v1alpha1.ClusterAllows{Volumes: !v.forbids} },
		},
	})
	t.Cleanup(v.Queue.ShutDown)
	return v
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shelve has volumes seen in the cluster.
func (v *testVolumes) shelve(t *testing.T, volumes ...*corev1.PersistentVolume) {
	t.Helper()
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for _, volume := range volumes {
		must(t, v.client.Tracker().Add(volume.DeepCopy()))
		if _, ours := projection.OriginOf(volume); ours {
			must(t, store.Add(volume))
		}
	}
	v.held.set(store, func() bool { return true })
}

func TestAVolumeGoesWithItsClaim(t *testing.T) {
	const retain, remove = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete
	stranger := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk", UID: "theirs"}}
	theirClaim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "theirs"}}
	for name, test := range map[string]struct {
		above   *corev1.PersistentVolume
		below   *corev1.PersistentVolume
		claim   *corev1.PersistentVolumeClaim // below
		runsIn  string                        // "east" unless given
		going   bool                          // the claim is being deleted above
		gone    bool                          // the claim is gone above
		forbids bool                          // the cluster takes none
		leaving string                        // the manner in which the cluster is removed, "-" for the usual one
		want    string                        // what is done
		problem string
	}{
		"it is made where its claim is to be":                {above: disk("uid-of-data"), want: "get,apply Retain"},
		"not where it is not":                                {above: disk("uid-of-data"), runsIn: "west"},
		"not for a claim that nobody has noted":              {above: disk("")},
		"not for an earlier claim of that name":              {above: disk("uid-of-another")},
		"not where the admin does not let it in":             {above: disk("uid-of-data"), forbids: true},
		"not over one of somebody else's":                    {above: disk("uid-of-data"), below: stranger, want: "get", problem: "has a PersistentVolume disk already, which is not ours"},
		"not for somebody else's claim of that name":         {above: disk("uid-of-data"), claim: theirClaim, problem: "its claim shop/data is the name of a claim there that is not ours"},
		"what is there stays":                                {above: disk("uid-of-data"), below: carriedDisk(t, "below-data", corev1.VolumeBound, retain), claim: dataBelow(t)},
		"its policy there is put back":                       {above: disk("uid-of-data"), below: carriedDisk(t, "below-data", corev1.VolumeBound, remove), claim: dataBelow(t), want: "apply Retain"},
		"it stays as long as a claim has it":                 {above: disk("uid-of-data"), runsIn: "west", below: carriedDisk(t, "below-data", corev1.VolumeBound, retain), claim: dataBelow(t)},
		"also if it is gone above":                           {below: carriedDisk(t, "below-data", corev1.VolumeBound, retain), claim: dataBelow(t)},
		"and then loses no data":                             {above: disk("uid-of-data"), runsIn: "west", below: carriedDisk(t, "below-data", corev1.VolumeBound, remove), claim: dataBelow(t), want: "patch Retain"},
		"a claim that moves takes it along, and no data":     {above: disk("uid-of-data", noted(corev1.VolumeReleased)), runsIn: "west", below: carriedDisk(t, "below-data", corev1.VolumeReleased, retain), want: "delete"},
		"not before it retains its data":                     {above: disk("uid-of-data", noted(corev1.VolumeReleased)), runsIn: "west", below: carriedDisk(t, "below-data", corev1.VolumeReleased, remove), want: "patch Retain"},
		"a claim that is gone leaves the data that is kept":  {above: disk("uid-of-data", keptAbove, noted(corev1.VolumeReleased)), gone: true, below: carriedDisk(t, "below-data", corev1.VolumeReleased, retain), want: "delete"},
		"one that is about to go decides about nothing yet":  {above: disk("uid-of-data", noted(corev1.VolumeBound)), going: true, below: carriedDisk(t, "below-data", corev1.VolumeReleased, retain)},
		"and makes nothing":                                  {above: disk("uid-of-data"), going: true},
		"data that is to go goes":                            {above: disk("uid-of-data", noted(corev1.VolumeReleased)), gone: true, below: carriedDisk(t, "below-data", corev1.VolumeReleased, retain), want: "patch Delete"},
		"not before that is on record":                       {above: disk("uid-of-data", noted(corev1.VolumeBound)), gone: true, below: carriedDisk(t, "below-data", corev1.VolumeReleased, retain)},
		"it is the cluster that makes away with it":          {above: disk("uid-of-data", noted(corev1.VolumeReleased)), gone: true, below: carriedDisk(t, "below-data", corev1.VolumeReleased, remove)},
		"a volume that nobody had just goes":                 {above: disk("uid-of-data"), gone: true, below: carriedDisk(t, "", corev1.VolumeAvailable, retain), want: "delete"},
		"what is gone above goes, and its data stays":        {below: carriedDisk(t, "below-data", corev1.VolumeReleased, retain), gone: true, want: "delete"},
		"one that is free again above goes":                  {above: disk("", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }), gone: true, below: carriedDisk(t, "below-data", corev1.VolumeReleased, remove), want: "patch Retain"},
		"what an earlier claim had makes room for a new one": {above: disk("uid-of-data"), below: carriedDisk(t, "earlier", corev1.VolumeReleased, retain), want: "delete"},
		"one of an earlier volume of that name goes":         {above: disk("uid-of-data", func(v *corev1.PersistentVolume) { v.UID = "new" }), below: carriedDisk(t, "below-data", corev1.VolumeReleased, retain), want: "delete"},
		"with the cluster it goes":                           {above: disk("uid-of-data"), below: carriedDisk(t, "below-data", corev1.VolumeReleased, retain), leaving: "-", want: "delete"},
		"with one that is left as it is it is let go":        {above: disk("uid-of-data"), below: carriedDisk(t, "below-data", corev1.VolumeBound, retain), claim: dataBelow(t), leaving: v1alpha1.RemoveOrphan, want: "patch "},
		"with one that is gone for good nothing is done":     {above: disk("uid-of-data"), below: carriedDisk(t, "below-data", corev1.VolumeReleased, retain), leaving: v1alpha1.RemoveForce},
	} {
		t.Run(name, func(t *testing.T) {
			u := &upstream{runsIn: cmp.Or(test.runsIn, "east")}
			if claim := dataClaim(); !test.gone {
				if test.going {
					claim.DeletionTimestamp = ptr.To(metav1.Now())
				}
				u.claim = claim
			}
			if test.above != nil {
				u.volumes = append(u.volumes, test.above)
			}
			v := east(t, u, some(test.claim)...)
			v.forbids, v.leaving = test.forbids, test.leaving
			v.shelve(t, some(test.below)...)
			must(t, v.Sync(t.Context(), Key("disk")))
			if got := done(v.client); got != test.want {
				t.Errorf("did %q, want %q", got, test.want)
			}
			if got := v.States.Of(Key("disk")).Problem; !strings.Contains(got, test.problem) || (got == "") != (test.problem == "") {
				t.Errorf("problem %q, want %q", got, test.problem)
			}
		})
	}
}

// some is a list of what a test gives.
func some[T any](given *T) []*T {
	if given == nil {
		return nil
	}
	return []*T{given}
}

// done is what was done to volumes, with the policy that was given.
func done(client *fake.Clientset) string {
	var out []string
	for _, action := range client.Actions() {
		verb := action.GetVerb()
		if patch, ok := action.(clienttesting.PatchAction); ok {
			text := string(patch.GetPatch())
			if patch.GetPatchType() == types.ApplyPatchType {
				verb = "apply"
			}
			verb += " "
			for _, policy := range []string{"Retain", "Delete"} {
				if strings.Contains(text, `"persistentVolumeReclaimPolicy":"`+policy+`"`) {
					verb += policy
				}
			}
		}
		out = append(out, verb)
	}
	return strings.Join(out, ",")
}

func TestAClaimWaitsForItsVolume(t *testing.T) {
	u := &upstream{volumes: some(disk("uid-of-data")), claim: dataClaim(), runsIn: "east"}
	v := east(t, u)
	v.shelve(t)
	key := identity.Key{Resource: identity.Claims, Namespace: "shop", Name: "data"}
	if waits, problem := v.Awaits(key, dataClaim()); !waits || problem != "" {
		t.Errorf("waits %v, problem %q", waits, problem)
	}
	v.States.Set(Key("disk"), states.State{Problem: "the name is taken"})
	if _, problem := v.Awaits(key, dataClaim()); problem != "the name is taken" {
		t.Errorf("problem %q", problem)
	}
	v.shelve(t, carriedDisk(t, "", corev1.VolumeAvailable, corev1.PersistentVolumeReclaimRetain))
	if waits, _ := v.Awaits(key, dataClaim()); waits {
		t.Error("it waits although the volume is there")
	}
	must(t, v.client.Tracker().Delete(identity.Volumes, "", "disk"))
	// Nobody waits in silence for a right that was not granted.
	v.held.set(cache.NewStore(cache.MetaNamespaceKeyFunc), func() bool { return false })
	v.held.deny(true)
	must(t, v.Sync(t.Context(), Key("disk")))
	if _, problem := v.Awaits(key, dataClaim()); !strings.Contains(problem, "manifold cluster join east --cluster-kubeconfig FILE --allow-volumes") {
		t.Errorf("problem %q", problem)
	}
	v.held.set(cache.NewStore(cache.MetaNamespaceKeyFunc), func() bool { return true })
	must(t, v.Sync(t.Context(), Key("disk")))
	if waits, problem := v.Awaits(key, dataClaim()); !waits || problem != "" {
		t.Errorf("waits %v, problem %q", waits, problem)
	}
	// One that was for an earlier claim is nothing to wait for, nor is any where none goes.
	u.volumes = some(disk("earlier"))
	v.held.set(cache.NewStore(cache.MetaNamespaceKeyFunc), func() bool { return true })
	if waits, _ := v.Awaits(key, dataClaim()); waits {
		t.Error("it waits for a volume of an earlier claim")
	}
	u.volumes = some(disk("uid-of-data"))
	v.forbids = true
	if waits, _ := v.Awaits(key, dataClaim()); waits {
		t.Error("it waits where no volume goes")
	}
}

func TestClaimsFindVolumesMadeByHandByTheirClass(t *testing.T) {
	manual := func(ref *corev1.ObjectReference) func(*corev1.PersistentVolume) {
		return func(v *corev1.PersistentVolume) { v.Spec.StorageClassName, v.Spec.ClaimRef = "manual", ref }
	}
	for name, test := range map[string]struct {
		volume  *corev1.PersistentVolume
		forbids bool
		want    bool
	}{
		"one that is free":                   {volume: disk("", manual(nil)), want: true},
		"one that a claim there has":         {volume: disk("", manual(&corev1.ObjectReference{Namespace: "shop", Name: "other"})), want: true},
		"not one of another namespace":       {volume: disk("", manual(&corev1.ObjectReference{Namespace: "bank", Name: "data"}))},
		"not one of another class":           {volume: disk("uid-of-data")},
		"not where no such volume is let in": {volume: disk("", manual(nil)), forbids: true},
		"not where there is none":            {},
	} {
		t.Run(name, func(t *testing.T) {
			v := east(t, &upstream{volumes: some(test.volume)})
			v.forbids = test.forbids
			if got := v.Serve("manual", "shop"); got != test.want {
				t.Errorf("served: %v, want %v", got, test.want)
			}
		})
	}
}

// ofTheBank is what east has of the disk, bound to a claim of another namespace, which it was given for shop/data or for that one.
func ofTheBank(t *testing.T, forShop bool) *corev1.PersistentVolume {
	t.Helper()
	out := carriedDisk(t, "below-data", corev1.VolumeBound, corev1.PersistentVolumeReclaimRetain)
	if !forShop {
		out.Annotations[v1alpha1.AnnotationProjection] = "earlier"
	}
	out.Spec.ClaimRef.Namespace = "bank"
	return out
}

func TestAClusterSpeaksOnlyOfVolumesThatItWasGiven(t *testing.T) {
	const retain = corev1.PersistentVolumeReclaimRetain
	for name, test := range map[string]struct {
		runsIn    string
		recorded  bool
		below     *corev1.PersistentVolume
		claim     *corev1.PersistentVolumeClaim
		concerned bool
		want      corev1.PersistentVolumePhase
		doubts    int
	}{
		"it has the claim":                                  {runsIn: "east", below: carriedDisk(t, "below-data", corev1.VolumeBound, retain), claim: dataBelow(t), concerned: true, want: corev1.VolumeBound},
		"it has it no more, and that is on record":          {runsIn: "west", recorded: true, below: carriedDisk(t, "below-data", corev1.VolumeReleased, retain), concerned: true, want: corev1.VolumeReleased},
		"it was never given any":                            {runsIn: "west", below: carriedDisk(t, "below-data", corev1.VolumeBound, retain), claim: dataBelow(t)},
		"it says that a claim of another namespace has it":  {runsIn: "east", below: ofTheBank(t, true), claim: dataBelow(t), concerned: true, want: corev1.VolumePending, doubts: 1},
		"it was given it for that one":                      {runsIn: "east", below: ofTheBank(t, false), claim: dataBelow(t), concerned: true, want: corev1.VolumePending},
		"it says that an earlier claim has it":              {runsIn: "east", below: carriedDisk(t, "earlier", corev1.VolumeBound, retain), claim: dataBelow(t), concerned: true, want: corev1.VolumePending},
		"its claim is not seen any more":                    {runsIn: "east", recorded: true, below: carriedDisk(t, "below-data", corev1.VolumeBound, retain), concerned: true, want: corev1.VolumePending},
		"it says that a claim has it that only looks right": {runsIn: "east", below: carriedDisk(t, "theirs", corev1.VolumeBound, retain), claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "theirs"}}, concerned: true, want: corev1.VolumePending},
		"it has one that only has the name": {runsIn: "east", concerned: true, below: func() *corev1.PersistentVolume {
			v := carriedDisk(t, "below-data", corev1.VolumeBound, retain)
			v.Annotations[v1alpha1.AnnotationUID] = "another"
			return v
		}(), claim: dataBelow(t)},
	} {
		t.Run(name, func(t *testing.T) {
			above := disk("uid-of-data")
			v := east(t, &upstream{volumes: some(above), claim: dataClaim(), runsIn: test.runsIn}, some(test.claim)...)
			v.shelve(t, test.below)
			report, concerned, known := v.Report(above, test.recorded)
			if concerned != test.concerned || !known || report.Phase != test.want || len(report.Doubts) != test.doubts {
				t.Errorf("concerned %v, known %v: %+v", concerned, known, report)
			}
		})
	}
	// As long as nothing has been seen, nothing is known.
	v := east(t, &upstream{claim: dataClaim(), runsIn: "east"})
	if _, _, known := v.Report(disk("uid-of-data"), true); known {
		t.Error("it is known what is there")
	}
}
