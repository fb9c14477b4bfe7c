package projection

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// database is a StatefulSet of five replicas.
func database(edits ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	in := &appsv1.StatefulSet{ObjectMeta: named("shop", "db")}
	in.Spec = appsv1.StatefulSetSpec{
		Replicas: ptr.To[int32](5), ServiceName: "db-peers", PodManagementPolicy: appsv1.OrderedReadyPodManagement,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")},
		}},
	}
	for _, edit := range edits {
		edit(in)
	}
	return in
}

func startingAt(ordinal int32) func(*appsv1.StatefulSet) {
	return func(in *appsv1.StatefulSet) { in.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: ordinal} }
}

func rollingFrom(partition int32) func(*appsv1.StatefulSet) {
	return func(in *appsv1.StatefulSet) {
		in.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To(partition)}
	}
}

func TestAClusterHoldsItsRangeOfAStatefulSet(t *testing.T) {
	const none = -1
	for name, test := range map[string]struct {
		in    *appsv1.StatefulSet
		share placement.Share
		// wantOrdinal is the first one that is set, wantPartition the partition; none if there is none.
		wantOrdinal, wantPartition int32
	}{
		"the whole is as it is":                          {database(), placement.Share{Replicas: 5}, none, none},
		"the whole from an ordinal of the user's":        {database(startingAt(3)), placement.Share{Replicas: 5}, 3, none},
		"a partition of the whole, even beyond it":       {database(rollingFrom(9)), placement.Share{Replicas: 5}, none, 9},
		"the first range":                                {database(), placement.Share{Replicas: 2}, none, none},
		"the second range":                               {database(), placement.Share{Replicas: 3, Start: 2}, 2, none},
		"the second range from an ordinal of the user's": {database(startingAt(10)), placement.Share{Replicas: 3, Start: 2}, 12, none},
		"a partition in the range":                       {database(rollingFrom(3)), placement.Share{Replicas: 3, Start: 2}, 2, 1},
		"a partition below the range":                    {database(rollingFrom(1)), placement.Share{Replicas: 3, Start: 2}, 2, 0},
		"a partition above the range":                    {database(rollingFrom(3)), placement.Share{Replicas: 2}, none, 2},
		"a partition counts replicas and not ordinals":   {database(startingAt(10), rollingFrom(3)), placement.Share{Replicas: 3, Start: 2}, 12, 1},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := statefulSet.build().Project(test.in, Part{Share: test.share}, east)
			if err != nil {
				t.Fatal(err)
			}
			spec := out.(*appsv1.StatefulSet).Spec
			ordinal, partition := int32(none), int32(none)
			if spec.Ordinals != nil {
				ordinal = spec.Ordinals.Start
			}
			if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil {
				partition = *rolling.Partition
			}
			if *spec.Replicas != test.share.Replicas || ordinal != test.wantOrdinal || partition != test.wantPartition {
				t.Errorf("%d replicas from %d, partition %d; want %d, %d, %d",
					*spec.Replicas, ordinal, partition, test.share.Replicas, test.wantOrdinal, test.wantPartition)
			}
		})
	}
}

func TestAStatefulSetNeedsItsService(t *testing.T) {
	want := Reference{Resource: service.resource, Namespace: "shop", Name: "db-peers", Optional: true}
	if got := References(database()); !slices.Contains(got, want) {
		t.Errorf("references %v, want %v among them", got, want)
	}
}

// An override may change what cannot be changed; then the cluster says so.
func TestAStatefulSetIsNotReplacedForAField(t *testing.T) {
	for name, change := range map[string]func(live *appsv1.StatefulSet){
		"the Service":       func(live *appsv1.StatefulSet) { live.Spec.ServiceName = "other" },
		"the order of pods": func(live *appsv1.StatefulSet) { live.Spec.PodManagementPolicy = appsv1.ParallelPodManagement },
		"a claim's class": func(live *appsv1.StatefulSet) {
			live.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = ptr.To("slow")
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind, part, target := statefulSet.build(), Part{Share: placement.Share{Replicas: 5}}, Target{LogicalCluster: "l", Cluster: "east"}
			desired, err := kind.Project(database(), part, target)
			if err != nil {
				t.Fatal(err)
			}
			in := database()
			change(in)
			live, err := kind.Project(in, part, target)
			if err != nil {
				t.Fatal(err)
			}
			if got := kind.Plan(desired, live); got.Step != Apply {
				t.Errorf("%+v, want it to be applied", got)
			}
		})
	}
}

func TestNoOwnerOfAClaimGoesBelow(t *testing.T) {
	mine := metav1.OwnerReference{APIVersion: "rabbitmq.com/v1beta1", Kind: "RabbitmqCluster", Name: "mq", UID: "above"}
	in := database(func(in *appsv1.StatefulSet) {
		in.Spec.VolumeClaimTemplates[0].OwnerReferences = []metav1.OwnerReference{mine}
		in.Spec.VolumeClaimTemplates[0].Finalizers = []string{"example.com/backup"}
	})
	kind := statefulSet.build()
	project := func() *appsv1.StatefulSet {
		out, err := kind.Project(in, Part{Share: placement.Share{Replicas: 5}}, east)
		if err != nil {
			t.Fatal(err)
		}
		return out.(*appsv1.StatefulSet)
	}
	out := project()
	if template := out.Spec.VolumeClaimTemplates[0]; owned(&template) || len(template.Finalizers) != 1 || template.Spec.StorageClassName == nil {
		t.Errorf("the template is %+v, want all of it but the owners", template)
	}
	if !owned(&in.Spec.VolumeClaimTemplates[0]) {
		t.Error("the object above has lost its owners")
	}

	earlier := project()
	earlier.Spec.VolumeClaimTemplates[0].OwnerReferences = []metav1.OwnerReference{mine}
	kind.Keep(out, earlier)
	if got := out.Spec.VolumeClaimTemplates[0].OwnerReferences; len(got) != 1 || got[0].UID != mine.UID {
		t.Errorf("owners %v, want those of the template below, which cannot be changed", got)
	}
}
