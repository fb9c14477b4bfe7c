package versions

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// object reads what a test says of an object. Its metadata are a generation of 2 and the name "web", unless it says otherwise.
func object(t testing.TB, apiVersion, kind, fields string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{Object: map[string]any{}}
	text, err := yaml.YAMLToJSON([]byte(fields))
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]any{}
	if err := json.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	content["apiVersion"], content["kind"] = apiVersion, kind
	if content["metadata"] == nil {
		content["metadata"] = map[string]any{"name": "web", "generation": 2}
	}
	if text, err = json.Marshal(content); err != nil {
		t.Fatal(err)
	}
	if err := out.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return out
}

// told is what is expected of a workload, of which the kind, the name and the condition are told elsewhere.
type told struct {
	version, applied string
	ready, failed    bool
	message          string
}

func tellsOf(s weave.WorkloadStatus) told {
	return told{s.Version, s.LastAppliedRevision, s.Ready, s.Failed, s.Message}
}

func TestWhatAHelmReleaseSays(t *testing.T) {
	const spec = "spec: {chart: {spec: {version: 6.1.6}}}\n"
	for name, test := range map[string]struct {
		fields string
		want   told
	}{
		"one that nobody has looked at": {spec, told{version: "6.1.6", message: "its controller has said nothing of it yet"}},
		"one that is installed": {
			spec + `status: {observedGeneration: 2, lastAppliedRevision: 6.1.6, conditions: [{type: Ready, status: "True", reason: ReconciliationSucceeded}]}`,
			told{version: "6.1.6", applied: "6.1.6", ready: true},
		},
		"as newer controllers say it": {
			spec + `status: {observedGeneration: 2, history: [{chartVersion: 6.1.6, status: failed}, {chartVersion: 6.1.5, status: deployed}], conditions: [{type: Ready, status: "False", reason: UpgradeFailed, message: timed out}]}`,
			told{version: "6.1.6", applied: "6.1.5", failed: true, message: "UpgradeFailed: timed out"},
		},
		"one that is ready as it was before is not ready": {
			spec + `status: {observedGeneration: 1, lastAppliedRevision: 6.1.5, conditions: [{type: Ready, status: "True", reason: ok}]}`,
			told{version: "6.1.6", applied: "6.1.5", message: notTakenUp},
		},
		"nor one whose condition is of before": {
			spec + `status: {observedGeneration: 2, lastAppliedRevision: 6.1.5, conditions: [{type: Ready, status: "True", reason: ok, observedGeneration: 1}]}`,
			told{version: "6.1.6", applied: "6.1.5", message: notTakenUp},
		},
		"one that is on its way has not failed": {
			spec + `status: {observedGeneration: 2, lastAppliedRevision: 6.1.5, conditions: [{type: Ready, status: "Unknown", reason: Progressing, message: upgrading}]}`,
			told{version: "6.1.6", applied: "6.1.5", message: "Progressing: upgrading"},
		},
		"nor one that waits for another": {
			spec + `status: {observedGeneration: 2, conditions: [{type: Ready, status: "False", reason: DependencyNotReady, message: wait}]}`,
			told{version: "6.1.6", message: "DependencyNotReady: wait"},
		},
		"one that is stalled has": {
			spec + `status: {observedGeneration: 2, conditions: [{type: Ready, status: "Unknown", reason: Progressing, message: x}, {type: Stalled, status: "True", reason: RetriesExceeded}]}`,
			told{version: "6.1.6", failed: true, message: "Progressing: x"},
		},
		"a range is of the version that was tried last": {
			`{spec: {chart: {spec: {version: ">=6.0.0"}}}, status: {observedGeneration: 2, lastAppliedRevision: 6.1.5, lastAttemptedRevision: 6.1.6, conditions: [{type: Ready, status: "True", reason: ok}]}}`,
			told{version: "6.1.6", applied: "6.1.5", ready: true},
		},
		"a range that was installed before anybody said what was tried": {
			`{spec: {chart: {spec: {version: 6.x}}}, status: {observedGeneration: 2, lastAppliedRevision: 6.1.5, conditions: [{type: Ready, status: "True", reason: ok}]}}`,
			told{version: "6.1.5", applied: "6.1.5", ready: true},
		},
		"one that is suspended says so": {
			`{spec: {suspend: true, chart: {spec: {version: 6.1.6}}}, status: {observedGeneration: 2, lastAppliedRevision: 6.1.6, conditions: [{type: Ready, status: "True", reason: ok}]}}`,
			told{version: "6.1.6", applied: "6.1.6", ready: true, message: "it is suspended"},
		},
		"what is no text says nothing": {
			`{spec: {chart: [7]}, status: {observedGeneration: many, history: {a: b}, conditions: [7, {type: Ready, status: true}]}}`, told{message: notTakenUp},
		},
	} {
		t.Run(name, func(t *testing.T) {
			whole := object(t, "helm.toolkit.fluxcd.io/v2", "HelmRelease", test.fields)
			for how, o := range map[string]*unstructured.Unstructured{"whole": whole, "trimmed": Trim(whole)} {
				got, known := Of(o)
				if !known || got.Kind != "HelmRelease" || got.Name != "web" || tellsOf(got) != test.want {
					t.Errorf("%s, it is %+v, want %+v", how, tellsOf(got), test.want)
				}
			}
		})
	}
}

func TestWhatAKustomizationSays(t *testing.T) {
	const (
		is  = "main@sha1:4b825dc642cb6eb9a060e54bf8d69288fbee4904"
		was = "main@sha1:0000000000000000000000000000000000000000"
	)
	for name, test := range map[string]struct {
		fields string
		want   told
	}{
		"one that is applied": {
			`status: {observedGeneration: 2, lastAppliedRevision: "` + is + `", lastAttemptedRevision: "` + is + `", conditions: [{type: Ready, status: "True", reason: ok}]}`,
			told{version: is, applied: is, ready: true},
		},
		"one that fails with what is new keeps what was applied": {
			`status: {observedGeneration: 2, lastAppliedRevision: "` + was + `", lastAttemptedRevision: "` + is + `", conditions: [{type: Ready, status: "False", reason: HealthCheckFailed, message: "web: \u001b[31mred"}]}`,
			told{version: is, applied: was, failed: true, message: "HealthCheckFailed: web: ^[[31mred"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := Of(Trim(object(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", test.fields)))
			if !known || tellsOf(got) != test.want || len(got.Conditions) != 1 || got.Conditions[0].Type != "Ready" {
				t.Errorf("it is %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestWhatWorkloadsSay(t *testing.T) {
	const template = "template: {spec: {initContainers: [{name: init, image: busybox}], containers: [{name: web, image: 'ghcr.io/stefanprodan/podinfo:6.1.8'}, {name: proxy, image: 'localhost:5000/envoy:1.30'}]}}"
	const version = "6.1.8,1.30,latest"
	for name, test := range map[string]struct {
		kind, fields string
		want         told
	}{
		"a Deployment that is ready": {
			"Deployment", "{spec: {replicas: 2, " + template + "}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}}",
			told{version: version, applied: version, ready: true},
		},
		"one whose status is of before": {
			"Deployment", "{spec: {replicas: 2, " + template + "}, status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}}",
			told{version: version, message: notTakenUp},
		},
		"one of which old pods are left": {
			"Deployment", "{spec: {replicas: 2, " + template + "}, status: {observedGeneration: 2, replicas: 3, updatedReplicas: 2, readyReplicas: 3, availableReplicas: 3}}",
			told{version: version, message: "2 of 2 pods are updated, and 3 ready"},
		},
		"one that makes no progress": {
			"Deployment", "{spec: {" + template + "}, status: {observedGeneration: 2, replicas: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: timed out}]}}",
			told{version: version, failed: true, message: "timed out"},
		},
		"one that is paused": {
			"Deployment", "{spec: {paused: true, " + template + "}, status: {observedGeneration: 2, replicas: 1, readyReplicas: 1, availableReplicas: 1}}",
			told{version: version, message: "it is paused: 0 of 1 pods are updated, and 1 ready"},
		},
		"one without replicas": {"Deployment", "{spec: {replicas: 0, " + template + "}, status: {observedGeneration: 2}}", told{version: version, applied: version, ready: true}},
		"a StatefulSet that is ready": {
			"StatefulSet", "{spec: {replicas: 3, " + template + "}, status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, readyReplicas: 3}}",
			told{version: version, applied: version, ready: true},
		},
		"one that updates a part on purpose": {
			"StatefulSet", "{spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}, " + template + "}, status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, readyReplicas: 3}}",
			told{version: version, applied: version, ready: true},
		},
		"one that is on its way": {
			"StatefulSet", "{spec: {replicas: 3, " + template + "}, status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, readyReplicas: 2}}",
			told{version: version, message: "1 of 3 pods are updated, and 2 ready"},
		},
		"a DaemonSet that is ready": {
			"DaemonSet", "{spec: {" + template + "}, status: {observedGeneration: 2, desiredNumberScheduled: 4, updatedNumberScheduled: 4, numberReady: 4, numberAvailable: 4}}",
			told{version: version, applied: version, ready: true},
		},
		"one that is on its way to nodes": {
			"DaemonSet", "{spec: {" + template + "}, status: {observedGeneration: 2, desiredNumberScheduled: 4, updatedNumberScheduled: 4, numberReady: 3, numberAvailable: 3}}",
			told{version: version, message: "4 of 4 pods are updated, and 3 ready"},
		},
		"a CronJob":                     {"CronJob", "{spec: {suspend: true, jobTemplate: {spec: {" + template + "}}}}", told{version: version, applied: version, ready: true, message: "it is suspended"}},
		"what is not what it should be": {"Deployment", "{spec: {replicas: many}, status: 7}", told{message: "it does not read as what it should be"}},
	} {
		t.Run(name, func(t *testing.T) {
			apiVersion := appsv1.SchemeGroupVersion.String()
			if test.kind == "CronJob" {
				apiVersion = batchv1.SchemeGroupVersion.String()
			}
			whole := object(t, apiVersion, test.kind, test.fields)
			got, known := Of(whole)
			if !known || got.Kind != test.kind || got.Name != "web" || tellsOf(got) != test.want {
				t.Errorf("it is %+v, want %+v", got, test.want)
			}
			if test.want.version == version && len(got.Images) != 3 {
				t.Errorf("images are %v", got.Images)
			}
			if trimmed, _ := Of(Trim(whole)); tellsOf(trimmed) != test.want && !strings.Contains(test.want.message, "does not read") {
				t.Errorf("trimmed, it is %+v", tellsOf(trimmed))
			}
		})
	}
}

func TestTagsOfImages(t *testing.T) {
	const hash = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for image, want := range map[string]string{
		"nginx": "latest", "nginx:1.25": "1.25", "localhost:5000/nginx": "latest", "localhost:5000/nginx:1.25": "1.25", "nginx@" + hash: "sha256:0123456789ab",
		"nginx:1.25@" + hash: "1.25", "nginx:": "latest", "nginx@x": "x", "": "latest", "@": "latest", "a@sha256:": "sha256:",
	} {
		if got := Tag(image); got != want {
			t.Errorf("the tag of %q is %q, want %q", image, got, want)
		}
	}
}

func TestWhatAnApplicationSays(t *testing.T) {
	app := func(change func(*v1alpha1.ApplicationStatus)) *v1alpha1.Application {
		out := &v1alpha1.Application{}
		out.Name, out.Generation = "web", 2
		out.Status = v1alpha1.ApplicationStatus{
			ObservedGeneration: 2, WantedRevision: "web-v7", LiveRevision: "web-v7", Health: v1alpha1.Healthy, Sync: v1alpha1.Synced,
			Targets: []v1alpha1.TargetStatus{{Name: "eu", Clusters: []v1alpha1.TargetClusterStatus{
				{Name: "east", Revision: "web-v7", LiveRevision: "web-v7", Health: v1alpha1.Healthy, Sync: v1alpha1.Synced},
				{Name: "west", Revision: "web-v7", LiveRevision: "web-v6", Health: v1alpha1.Progressing, Sync: v1alpha1.OutOfSync, Message: "on its way"},
			}}},
		}
		change(&out.Status)
		return out
	}
	for name, test := range map[string]struct {
		change     func(*v1alpha1.ApplicationStatus)
		whole      told
		east, west told
	}{
		"one that runs": {
			func(*v1alpha1.ApplicationStatus) {}, told{version: "web-v7", applied: "web-v7", ready: true},
			told{version: "web-v7", applied: "web-v7", ready: true}, told{version: "web-v7", applied: "web-v6", message: "on its way"},
		},
		"one that fails": {
			func(s *v1alpha1.ApplicationStatus) {
				s.LiveRevision, s.ReleasePhase, s.Release, s.Health = "web-v6", v1alpha1.ReleaseFailed, "web-x", v1alpha1.Progressing
				s.Targets[0].Clusters[0].Health, s.Targets[0].Clusters[0].Message = v1alpha1.Degraded, "crashes"
			},
			told{version: "web-v7", applied: "web-v6", failed: true, message: "release web-x has failed"},
			told{version: "web-v7", applied: "web-v7", failed: true, message: "crashes"}, told{version: "web-v7", applied: "web-v6", message: "on its way"},
		},
		"one that is not looked at yet": {
			func(s *v1alpha1.ApplicationStatus) { s.ObservedGeneration = 1 },
			told{version: "web-v7", applied: "web-v7", message: notTakenUp}, told{version: "web-v7", applied: "web-v7", message: notTakenUp},
			told{version: "web-v7", applied: "web-v6", message: notTakenUp},
		},
		"what is not known is not ready": {
			func(s *v1alpha1.ApplicationStatus) {
				s.Health, s.Sync = v1alpha1.HealthUnknown, v1alpha1.SyncUnknown
				s.Targets[0].Clusters[0].Sync, s.Targets[0].Clusters[0].Message = v1alpha1.SyncUnknown, "silent"
			},
			told{version: "web-v7", applied: "web-v7", message: "it runs web-v7, is to run web-v7 and is Unknown"},
			told{version: "web-v7", applied: "web-v7", message: "silent"}, told{version: "web-v7", applied: "web-v6", message: "on its way"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := app(test.change)
			if got, known := Of(of); !known || tellsOf(got) != test.whole {
				t.Errorf("it is %+v, want %+v", tellsOf(got), test.whole)
			}
			for cluster, want := range map[string]told{"east": test.east, "west": test.west} {
				if got, there := ApplicationIn(of, cluster); !there || tellsOf(got) != want {
					t.Errorf("in %s it is %+v, want %+v", cluster, tellsOf(got), want)
				}
			}
			if _, there := ApplicationIn(of, "north"); there {
				t.Error("it is in a cluster that it is not in")
			}
		})
	}
}

func TestWhatIsPartOfAPipeline(t *testing.T) {
	pipeline := &weave.Pipeline{}
	pipeline.Name = "podinfo"
	pipeline.Spec.AppRef = &weave.AppReference{APIVersion: "helm.toolkit.fluxcd.io/v2beta1", Kind: "HelmRelease", Name: "web"}
	labelled := func(labels map[string]string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{}
		out.SetName("other")
		out.SetLabels(labels)
		return out
	}
	app := &unstructured.Unstructured{}
	app.SetName("web")
	for name, test := range map[string]struct {
		got, want bool
	}{
		"with the label":            {Part(pipeline, Deployment, labelled(map[string]string{weave.PipelineLabel: "podinfo"})), true},
		"in its older spelling":     {Part(pipeline, Deployment, labelled(map[string]string{weave.OlderPipelineLabel: "podinfo"})), true},
		"of another pipeline":       {Part(pipeline, Deployment, labelled(map[string]string{weave.PipelineLabel: "other"})), false},
		"without a label":           {Part(pipeline, Deployment, labelled(nil)), false},
		"the app, by any version":   {Part(pipeline, HelmRelease, app), true},
		"another kind of that name": {Part(pipeline, Deployment, app), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: %t", name, test.got)
		}
	}
	if Labelled("", map[string]string{weave.PipelineLabel: ""}) {
		t.Error("an empty label names a pipeline")
	}
}

// Whatever a stranger sends, nothing breaks, what is told is bounded and fit to be stored, and trimming changes nothing of it.
func FuzzOf(f *testing.F) {
	f.Add(`{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","metadata":{"name":"a","generation":1},"spec":{"chart":{"spec":{"version":"1.0.0"}}},"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}}`)
	f.Add(`{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"a"},"status":{"conditions":[null,{"type":"Ready","status":"False","reason":"x","message":"\u0000"}],"observedGeneration":1.5}}`)
	f.Add(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":-1,"template":{"spec":{"containers":[{"image":"a@b:c"}]}}},"status":{"replicas":9999999999}}`)
	f.Add(`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"jobTemplate":{"spec":{"template":{"spec":{"initContainers":[{"image":":"}]}}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(text)); err != nil {
			t.Skip()
		}
		got, known := Of(o)
		stored, err := json.Marshal(got)
		if err != nil || !utf8.Valid(stored) {
			t.Fatalf("%q cannot be stored: %v", stored, err)
		}
		if most := mostVersion + mostRevision + mostImages*mostImage + 16<<10; len(stored) > most {
			t.Errorf("%d bytes are told of it, more than %d", len(stored), most)
		}
		trimmed, still := Of(Trim(o))
		if known != still {
			t.Errorf("trimmed, it is known: %t", still)
		}
		if !strings.Contains(got.Message, "does not read") {
			if diff := cmp.Diff(got, trimmed); diff != "" {
				t.Errorf("trimmed, it says otherwise (-whole +trimmed):\n%s", diff)
			}
		}
	})
}
