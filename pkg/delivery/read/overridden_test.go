package read

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

const delivered = `
targets: [{name: hoge, cluster: hoge, path: hoge}]
pipeline: {stages: [{name: K8S_CANARY_ROLLOUT, with: {replicas: 10%, perCluster: true}, failure: {}}]}
planner: {alwaysUsePipeline: true}
traffic: {method: Service}
service: {name: web}
workloads: [{name: web}]
variantLabel: {key: pipecd.dev/variant}
drift: {heal: true}
trigger: {paths: [lib/**], ignores: ['*.md']}
rollback: {when: Never}
prune: true
`

func TestWhatTheApplicationSaysOtherwiseThanItsFileIsTold(t *testing.T) {
	var file v1alpha1.RevisionDelivery
	if err := yaml.UnmarshalStrict([]byte(delivered), &file); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ own, want string }{
		"an application that says nothing itself":                                    {},
		"one that was made of the file says the same, with what the server fills in": {own: strings.ReplaceAll(delivered, "{replicas: 10%, perCluster: true}", "{perCluster: true, replicas: 10%}")},

		"targets without folders of their own":  {own: "targets: [{name: hoge, cluster: hoge}]"},
		"another folder of a target":            {own: "targets: [{name: eu, cluster: hoge, path: ./other}]", want: "resourceDir*of*target*hoge/targets[0].path"},
		"no pruning":                            {own: "prune: false", want: "quickSync.prune/prune"},
		"pruning, and by all releases":          {own: "prune: true"},
		"a rollback in any case":                {own: "rollback: {when: Any}", want: "planner.autoRollback/rollback.when"},
		"another pipeline":                      {own: "pipeline: {stages: [{name: K8S_SYNC}]}", want: "pipeline/pipeline"},
		"other options of a stage":              {own: strings.ReplaceAll(delivered, "10%", "20%"), want: "pipeline/pipeline"},
		"another planner":                       {own: "planner: {}", want: "planner/planner"},
		"another way to share out requests":     {own: "traffic: {method: Replicas}", want: "trafficRouting/traffic"},
		"another Service, and other workloads":  {own: "{service: {name: api}, workloads: [{name: api}]}", want: "service/service workloads/workloads"},
		"another label":                         {own: "variantLabel: {key: variant}", want: "variantLabel/variantLabel"},
		"drift that is only shown":              {own: "drift: {}", want: "driftDetection/drift"},
		"files that count, which takes in both": {own: "trigger: {paths: [web/**]}", want: "trigger.onCommit.paths/trigger.paths trigger.onCommit.ignores/trigger.ignores"},
		"another time to roll back":             {own: "rollback: {when: All}", want: "planner.autoRollback/rollback.when"},
	} {
		t.Run(name, func(t *testing.T) {
			app := v1alpha1.Application{}
			if err := yaml.UnmarshalStrict([]byte(test.own), &app.Spec); err != nil {
				t.Fatal(err)
			}
			v1alpha1.SetObjectDefaults_Application(&app)
			var want []string
			for _, pair := range strings.Fields(test.want) {
				of, field, _ := strings.Cut(pair, "/")
				want = append(want, strings.ReplaceAll(of, "*", " ")+" of app.pipecd.yaml is not honoured: spec."+field+" of the Application says otherwise, and comes first")
			}
			if got := Overridden(app.Spec, &file); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	if got := Overridden(v1alpha1.ApplicationSpec{Pipeline: &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{{With: &runtime.RawExtension{Raw: []byte("{")}}}}}, nil); got != nil {
		t.Errorf("without a file %q", got)
	}
}

func TestATargetThatTheFileLeavesOutIsTold(t *testing.T) {
	file := &v1alpha1.RevisionDelivery{Targets: []v1alpha1.Target{{Name: "hoge", Cluster: "hoge", Path: "hoge"}}}
	own := v1alpha1.ApplicationSpec{Targets: []v1alpha1.Target{{Name: "hoge", Cluster: "hoge"}, {Name: "fuga", Cluster: "fuga"}}}
	want := "multiTarget of app.pipecd.yaml, which leaves out target fuga, is not honoured: spec.targets[1] of the Application has it, and comes first"
	if got := Overridden(own, file); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Overridden(own, &v1alpha1.RevisionDelivery{}); got != nil {
		t.Errorf("of a file without targets %q", got)
	}
}
