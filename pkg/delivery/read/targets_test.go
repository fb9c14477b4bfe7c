package read

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestRegister(t *testing.T) {
	target := func(name, cluster, path string) v1alpha1.Target {
		return v1alpha1.Target{Name: name, Cluster: cluster, Path: path}
	}
	selected := func(name, region string) v1alpha1.Target {
		return v1alpha1.Target{Name: name, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": region}}}
	}
	for name, test := range map[string]struct {
		own, file, want []v1alpha1.Target
		files           map[string]int
		unknown         []int
	}{
		"a target without a folder gets that of the file": {
			own: []v1alpha1.Target{target("hoge", "hoge", ""), target("fuga", "fuga", "own")}, file: []v1alpha1.Target{target("fuga", "fuga", "b"), target("hoge", "hoge", "a")},
			want: []v1alpha1.Target{target("hoge", "hoge", "a"), target("fuga", "fuga", "own")}, files: map[string]int{"hoge": 1, "fuga": 0},
		},
		"the cluster says which one it is": {
			own: []v1alpha1.Target{target("first", "hoge", "")}, file: []v1alpha1.Target{target("hoge", "hoge", "a")},
			want: []v1alpha1.Target{target("first", "hoge", "a")}, files: map[string]int{"first": 0},
		},
		"a provider that is another name for a cluster": {
			own: []v1alpha1.Target{target("hoge", "east-1", "")}, file: []v1alpha1.Target{target("hoge", "hoge", "a")},
			want: []v1alpha1.Target{target("hoge", "east-1", "a")}, files: map[string]int{"hoge": 0},
		},
		"the cluster counts before the name": {
			own: []v1alpha1.Target{target("hoge", "fuga", ""), target("fuga", "hoge", "")}, file: []v1alpha1.Target{target("hoge", "hoge", "a"), target("fuga", "fuga", "b")},
			want: []v1alpha1.Target{target("hoge", "fuga", "b"), target("fuga", "hoge", "a")}, files: map[string]int{"hoge": 1, "fuga": 0},
		},
		"clusters that are selected by the same labels": {
			own: []v1alpha1.Target{selected("europe", "eu")}, file: []v1alpha1.Target{selected("eu", "eu"), selected("us", "us")},
			want: []v1alpha1.Target{selected("europe", "eu")}, files: map[string]int{"europe": 0}, unknown: []int{1},
		},
		"a target stands for one of the file": {
			own: []v1alpha1.Target{target("hoge", "fuga", "")}, file: []v1alpha1.Target{target("hoge", "hoge", "a"), target("fuga", "fuga", "b")},
			want: []v1alpha1.Target{target("hoge", "fuga", "b")}, files: map[string]int{"hoge": 1}, unknown: []int{0},
		},
		"one that the file does not name stays as it is": {
			own: []v1alpha1.Target{target("hoge", "hoge", "")}, want: []v1alpha1.Target{target("hoge", "hoge", "")}, files: map[string]int{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Register(test.own, test.file)
			if want := (Registered{Targets: test.want, Files: test.files, Unknown: test.unknown}); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestStagesOfTheFileNameTargetsAsTheApplicationDoes(t *testing.T) {
	file := &v1alpha1.RevisionDelivery{
		Targets:  []v1alpha1.Target{{Name: "hoge", Cluster: "hoge"}, {Name: "fuga", Cluster: "fuga"}},
		Pipeline: &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{{Name: v1alpha1.StageSync, Targets: []string{"fuga", "hoge"}}}},
	}
	own := v1alpha1.ApplicationSpec{Targets: []v1alpha1.Target{{Name: "first", Cluster: "hoge"}, {Name: "fuga", Cluster: "fuga"}}}
	if got := With(own, file).Pipeline.Stages[0].Targets; !reflect.DeepEqual(got, []string{"fuga", "first"}) {
		t.Errorf("the stage of the file is for %v", got)
	}
	if got := file.Pipeline.Stages[0].Targets; !reflect.DeepEqual(got, []string{"fuga", "hoge"}) {
		t.Errorf("the file itself has come to say %v", got)
	}
	own.Pipeline = &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{{Name: v1alpha1.StageSync, Targets: []string{"first"}}}}
	if got := With(own, file).Pipeline.Stages[0].Targets; !reflect.DeepEqual(got, []string{"first"}) {
		t.Errorf("the application's own stage is for %v", got)
	}
}
