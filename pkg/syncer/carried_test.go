package syncer

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

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

// usingData is a Deployment in east whose pods use the claim data.
func usingData(cluster string) projection.Object {
	d := deployment("web", toEast)
	d.Annotations[v1alpha1.AnnotationPlacement] = `{"` + cluster + `":{"replicas":1}}`
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	return d
}

func dataClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "uid-of-data"}}
}

// dataBelow is its projection.
func dataBelow(t *testing.T) *corev1.PersistentVolumeClaim {
	t.Helper()
	kind, _ := projection.ForResource(claimResource)
	out, err := kind.Project(dataClaim(), projection.Part{}, projection.Target{LogicalCluster: logicalCluster, Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	out.SetUID("below-data")
	return out.(*corev1.PersistentVolumeClaim)
}

// shelve has a syncer see volumes in its cluster.
func (s *testSyncer) shelve(t *testing.T, volumes ...*corev1.PersistentVolume) {
	t.Helper()
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for _, v := range volumes {
		must(t, s.client.(*fake.Clientset).Tracker().Add(v.DeepCopy()))
		if _, ours := projection.OriginOf(v); ours {
			must(t, store.Add(v))
		}
	}
	s.below.volumes.set(store, func() bool { return true })
	s.Allows = func(string) v1alpha1.ClusterAllows { return v1alpha1.ClusterAllows{Volumes: true} }
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
			runsIn := "east"
			if test.runsIn != "" {
				runsIn = test.runsIn
			}
			objects := []projection.Object{namespace("shop"), usingData(runsIn)}
			if claim := dataClaim(); !test.gone {
				if test.going {
					now := metav1.Now()
					claim.DeletionTimestamp = &now
				}
				objects = append(objects, claim)
			}
			u := newUpstream(t, objects...)
			if test.above != nil {
				must(t, u.volumes.Add(test.above))
			}
			var held []projection.Object
			if test.claim != nil {
				held = append(held, test.claim)
			}
			s := attach(t, u, "east", held...)
			s.Leaving = func(string) (bool, string) { return test.leaving != "", strings.TrimPrefix(test.leaving, "-") }
			client := s.client.(*fake.Clientset)
			if test.below != nil {
				s.shelve(t, test.below)
			} else {
				s.shelve(t)
			}
			if test.forbids {
				s.Allows = nil
			}
			must(t, s.sync(t.Context(), volumeKey("disk")))
			if got := done(client); got != test.want {
				t.Errorf("did %q, want %q", got, test.want)
			}
			if got := s.stateOf(volumeKey("disk")).problem; !strings.Contains(got, test.problem) || (got == "") != (test.problem == "") {
				t.Errorf("problem %q, want %q", got, test.problem)
			}
		})
	}
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
	u := newUpstream(t, namespace("shop"), usingData("east"), dataClaim())
	s := attach(t, u, "east", namespace("shop"))
	s.shelve(t)
	must(t, u.volumes.Add(disk("uid-of-data")))
	key := identity.Key{Resource: claimResource, Namespace: "shop", Name: "data"}
	if waits, problem := s.awaitsVolume(key, dataClaim()); !waits || problem != "" {
		t.Errorf("waits %v, problem %q", waits, problem)
	}
	s.setState(volumeKey("disk"), state{problem: "the name is taken"})
	if _, problem := s.awaitsVolume(key, dataClaim()); problem != "the name is taken" {
		t.Errorf("problem %q", problem)
	}
	s.shelve(t, carriedDisk(t, "", corev1.VolumeAvailable, corev1.PersistentVolumeReclaimRetain))
	if waits, _ := s.awaitsVolume(key, dataClaim()); waits {
		t.Error("it waits although the volume is there")
	}
	must(t, s.client.(*fake.Clientset).Tracker().Delete(volumeResource, "", "disk"))
	// Nobody waits in silence for a right that was not granted.
	s.below.volumes.set(cache.NewStore(cache.MetaNamespaceKeyFunc), func() bool { return false })
	s.below.volumes.deny(true)
	must(t, s.sync(t.Context(), volumeKey("disk")))
	if _, problem := s.awaitsVolume(key, dataClaim()); !strings.Contains(problem, "manifold cluster join east --cluster-kubeconfig FILE --allow-volumes") {
		t.Errorf("problem %q", problem)
	}
	s.below.volumes.set(cache.NewStore(cache.MetaNamespaceKeyFunc), func() bool { return true })
	must(t, s.sync(t.Context(), volumeKey("disk")))
	if waits, problem := s.awaitsVolume(key, dataClaim()); !waits || problem != "" {
		t.Errorf("waits %v, problem %q", waits, problem)
	}
	// One that was for an earlier claim is nothing to wait for, nor is any where none goes.
	must(t, u.volumes.Update(disk("earlier")))
	s.below.volumes.set(cache.NewStore(cache.MetaNamespaceKeyFunc), func() bool { return true })
	if waits, _ := s.awaitsVolume(key, dataClaim()); waits {
		t.Error("it waits for a volume of an earlier claim")
	}
	must(t, u.volumes.Update(disk("uid-of-data")))
	if s.Allows = nil; s.takesVolumes() {
		t.Fatal("it takes volumes")
	}
	if waits, _ := s.awaitsVolume(key, dataClaim()); waits {
		t.Error("it waits where no volume goes")
	}
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
		"it has the claim":                            {runsIn: "east", below: carriedDisk(t, "below-data", corev1.VolumeBound, retain), claim: dataBelow(t), concerned: true, want: corev1.VolumeBound},
		"it has it no more, and that is on record":    {runsIn: "west", recorded: true, below: carriedDisk(t, "below-data", corev1.VolumeReleased, retain), concerned: true, want: corev1.VolumeReleased},
		"it was never given any":                      {runsIn: "west", below: carriedDisk(t, "below-data", corev1.VolumeBound, retain), claim: dataBelow(t)},
		"it says that another claim has it":           {runsIn: "east", below: carriedDisk(t, "stolen", corev1.VolumeBound, retain), claim: dataBelow(t), concerned: true, want: corev1.VolumePending, doubts: 1},
		"it says so of a claim that only looks right": {runsIn: "east", below: carriedDisk(t, "theirs", corev1.VolumeBound, retain), claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "theirs"}}, concerned: true, want: corev1.VolumePending, doubts: 1},
		"it has one that only has the name": {runsIn: "east", concerned: true, below: func() *corev1.PersistentVolume {
			v := carriedDisk(t, "below-data", corev1.VolumeBound, retain)
			v.Annotations[v1alpha1.AnnotationUID] = "another"
			return v
		}(), claim: dataBelow(t)},
	} {
		t.Run(name, func(t *testing.T) {
			above := disk("uid-of-data")
			u := newUpstream(t, namespace("shop"), usingData(test.runsIn), dataClaim())
			must(t, u.volumes.Add(above))
			var held []projection.Object
			if test.claim != nil {
				held = append(held, test.claim)
			}
			s := attach(t, u, "east", held...)
			s.shelve(t, test.below)
			report, concerned, known := s.Volume(above, test.recorded)
			if concerned != test.concerned || !known || report.Phase != test.want || len(report.Doubts) != test.doubts {
				t.Errorf("concerned %v, known %v: %+v", concerned, known, report)
			}
		})
	}
	// As long as nothing has been seen, nothing is known.
	u := newUpstream(t, namespace("shop"), usingData("east"), dataClaim())
	s := attach(t, u, "east")
	if _, _, known := s.Volume(disk("uid-of-data"), true); known {
		t.Error("it is known what is there")
	}
}
