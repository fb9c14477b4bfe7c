package pipelines

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
)

const (
	app  = "appRef: {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: podinfo},"
	here = "[{name: dev, targets: [{namespace: podinfo}]}]"
	// over has dev in the logical cluster's place "dev", and prod in "prod".
	over = "[{name: dev, targets: [{namespace: podinfo, clusterRef: {kind: GitopsCluster, name: dev}}]}, {name: prod, targets: [{namespace: podinfo, clusterRef: {kind: Cluster, name: prod}}]}]"
)

func TestW17ATargetShowsKindNameAndVersionOfItsWorkloads(t *testing.T) {
	w := newWorld(t)
	w.helmRelease("podinfo", "6.1.6")
	w.deployment("podinfo", "podinfo-pipeline", "6.1.8", nil)
	w.deployment("podinfo", "podinfo-pipeline-2", "6.1.8", func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 })
	w.deployment("podinfo", "other", "1", func(d *appsv1.Deployment) { d.Labels = map[string]string{weave.PipelineLabel: "another"} })
	w.pipeline("", here)
	w.look()
	w.shows("dev", "podinfo: Deployment/podinfo-pipeline 6.1.8* Deployment/podinfo-pipeline-2 6.1.8 HelmRelease/podinfo 6.1.6*") // W11
	w.says(metav1.ConditionTrue, reasonShown, "")
	if got := w.told().ObservedGeneration; got != 1 {
		t.Errorf("it is told of generation %d", got)
	}
}

func TestW10WorkloadsOfAllKindsCount(t *testing.T) {
	w := newWorld(t)
	labels := map[string]string{weave.PipelineLabel: "podinfo"}
	meta := metav1.ObjectMeta{Namespace: "podinfo", Name: "web", Labels: labels}
	set := &appsv1.StatefulSet{ObjectMeta: *meta.DeepCopy()}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Image: "db:15"}}
	w.add(w.workloads[versions.StatefulSet], set)
	daemons := &appsv1.DaemonSet{ObjectMeta: *meta.DeepCopy()}
	daemons.Spec.Template.Spec.Containers = []corev1.Container{{Image: "agent:3"}}
	w.add(w.workloads[versions.DaemonSet], daemons)
	application := &delivery.Application{ObjectMeta: *meta.DeepCopy()}
	application.Status.WantedRevision, application.Status.LiveRevision, application.Status.Health = "web-v2", "web-v2", delivery.Healthy
	w.add(w.workloads[versions.Application], application)
	w.apply(`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: web, namespace: podinfo, labels: {pipelines.weave.works/pipeline: podinfo}}, status: {lastAppliedRevision: main@sha1:abc}}`)
	w.pipeline("", here)
	w.look()
	w.shows("dev", "podinfo: Application/web web-v2 DaemonSet/web 3* Kustomization/web main@sha1:abc StatefulSet/web 15")
	revision := &delivery.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "podinfo", Name: "web-v2"}}
	revision.Spec.Application, revision.Spec.Images = "web", []delivery.RevisionImage{{Name: "web", Tag: "6.1.8"}}
	w.add(w.ours.Delivery().V1alpha1().ApplicationRevisions().Informer(), revision)
	w.look()
	w.shows("dev", "podinfo: Application/web 6.1.8* DaemonSet/web 3* Kustomization/web main@sha1:abc StatefulSet/web 15")
}

func TestTheAppOfAPipelineNeedsNoLabel(t *testing.T) {
	w := newWorld(t)
	release := w.helmRelease("podinfo", "6.1.6")
	release.SetLabels(nil)
	w.pipeline(app, here)
	w.look()
	w.shows("dev", "podinfo: HelmRelease/podinfo 6.1.6* ready")
	release.SetLabels(map[string]string{weave.PipelineLabel: "podinfo"})
	w.keep(release)
	w.look()
	w.shows("dev", "podinfo: HelmRelease/podinfo 6.1.6* ready") // once
}

func TestW12AWorkloadOutsideOfTheTargetsDoesNotCount(t *testing.T) {
	w := newWorld(t)
	w.helmRelease("flux", "6.1.6")
	w.deployment("elsewhere", "web", "1", nil)
	w.pipeline("", here)
	w.look()
	w.shows("dev", "podinfo:")
	w.says(metav1.ConditionTrue, reasonShown, "")
}

func TestThereIsOneWriteForAChangeAndNoneWithoutOne(t *testing.T) {
	w := newWorld(t)
	w.helmRelease("podinfo", "6.1.6")
	w.pipeline(app, here)
	w.look()
	if len(w.writes) != 1 {
		t.Fatalf("written are %v", w.writes)
	}
	reads := len(w.reads)
	for range 3 {
		w.look()
	}
	w.restart()
	w.look()
	if len(w.writes) != 1 {
		t.Errorf("nothing has changed, and written are %v", w.writes[1:])
	}
	if got := w.reads[reads:]; len(got) != 2 { // the pipeline and the HelmRelease, after the restart
		t.Errorf("nothing has changed, and read are %v", got)
	}
	w.helmRelease("podinfo", "6.1.7")
	w.look()
	w.look()
	if len(w.writes) != 2 || strings.Contains(w.writes[1], "conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"TargetsShown") {
		t.Errorf("a version has changed, and written are %v", w.writes[1:])
	}
	w.shows("dev", "podinfo: HelmRelease/podinfo 6.1.7* ready")
}

func TestWhatOthersWriteStays(t *testing.T) {
	w := newWorld(t)
	w.helmRelease("podinfo", "6.1.6")
	w.pipeline("", "[{name: dev, targets: [{namespace: podinfo}]}, {name: prod, targets: [{namespace: flux}]}]")
	w.look()
	o := w.customs[schema.GroupKind{Group: weave.Group, Kind: weave.Kind}][podinfo.ObjectName.String()]
	set := func(value any, path ...string) {
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			t.Fatal(err)
		}
	}
	set(map[string]any{"revision": "6.1.7"}, "status", "environments", "dev", "waitingStatus")
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	set(append(conditions, map[string]any{"type": weave.ConditionPromoting, "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}), "status", "conditions")
	set(map[string]any{"by": "jane", "at": nil}, "status", "paused")
	w.keep(o)
	w.helmRelease("podinfo", "6.1.7")
	w.pipeline("", "[{name: dev, targets: [{namespace: podinfo}, {namespace: gone}]}]")
	w.look()
	told := w.told()
	if told.Environments["dev"].WaitingStatus == nil || told.Paused == nil || len(told.Conditions) != 2 || told.ObservedGeneration != 2 {
		t.Errorf("left is %+v", told)
	}
	if _, there := told.Environments["prod"]; there {
		t.Error("an environment that is gone is shown")
	}
	w.shows("dev", "podinfo: HelmRelease/podinfo 6.1.7* ready", "gone:")
}

func TestAConditionIsWrittenAsItWasRead(t *testing.T) {
	w := newWorld(t)
	w.pipeline("", here)
	w.look()
	pipelines := schema.GroupKind{Group: weave.Group, Kind: weave.Kind}
	read := w.customs[pipelines][podinfo.ObjectName.String()].DeepCopy()
	w.pipeline("", "[{name: dev, targets: [{namespace: gone}]}]")
	now, err := decode(w.customs[pipelines][podinfo.ObjectName.String()])
	if err != nil {
		t.Fatal(err)
	}
	now.ResourceVersion = read.GetResourceVersion() // somebody has written meanwhile
	if err := w.tell(t.Context(), podinfo, now, told{troubles: []trouble{{environment: "dev"}}}); err != nil {
		t.Fatal(err)
	}
	if len(w.writes) != 2 || !strings.Contains(w.writes[1], `"resourceVersion":"`+read.GetResourceVersion()+`"`) {
		t.Errorf("written are %v", w.writes)
	}
	w.says(metav1.ConditionTrue, reasonShown, "") // which was refused
	w.look()
	w.says(metav1.ConditionFalse, reasonUnreadable, `environment "dev", namespace "gone": there is no namespace "gone"`)
}

func TestW15WhatThereIsNotIsTold(t *testing.T) {
	w := newWorld(t)
	w.helmRelease("podinfo", "6.1.6")
	w.pipeline(app, `[{name: dev, targets: [{namespace: podinfo}, {namespace: nowhere}]}, {name: prod, targets: [{namespace: podinfo, clusterRef: {kind: GitopsCluster, name: mars}}, {namespace: nowhere, clusterRef: {kind: Cluster, name: prod}}]}]`)
	w.look()
	w.shows("dev", "podinfo: HelmRelease/podinfo 6.1.6* ready", "nowhere:") // W16
	w.shows("prod", "mars/podinfo:", "prod/nowhere:")
	var errors []string
	for _, target := range append(w.told().Environments["dev"].Targets, w.told().Environments["prod"].Targets...) {
		errors = append(errors, target.Error)
	}
	want := []string{"", `there is no namespace "nowhere"`, `there is no GitopsCluster "mars": manifold cluster list`,
		`there is no namespace "nowhere" in the logical cluster; to show what others run in the cluster: manifold cluster join prod --cluster-kubeconfig FILE --allow-pipelines`}
	if !slices.Equal(errors, want) {
		t.Errorf("errors are\n%s\nwant\n%s", strings.Join(errors, "\n"), strings.Join(want, "\n"))
	}
	w.says(metav1.ConditionFalse, reasonUnreadable, `environment "dev", namespace "nowhere": there is no namespace "nowhere"; and 2 more`)
	w.cluster("mars", nil)
	w.add(w.kube.Core().V1().Namespaces().Informer(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "nowhere"}})
	w.look()
	w.says(metav1.ConditionTrue, reasonShown, "")
}

func TestKindsThatNobodyHasDefinedAreTheTroubleOfWhoNamesThem(t *testing.T) {
	w := newWorld(t)
	w.undefine(versions.HelmRelease)
	w.undefine(versions.Kustomization)
	w.deployment("podinfo", "web", "6.1.8", nil)
	w.pipeline("", here)
	w.look()
	w.shows("dev", "podinfo: Deployment/web 6.1.8* ready")
	w.says(metav1.ConditionTrue, reasonShown, "")
	w.pipeline(app, here)
	w.look()
	w.shows("dev", "podinfo: Deployment/web 6.1.8*")
	w.says(metav1.ConditionFalse, reasonUnreadable, "kind HelmRelease.helm.toolkit.fluxcd.io is not defined in the logical cluster")
	w.define(versions.HelmRelease, versions.Custom[versions.HelmRelease])
	w.helmRelease("podinfo", "6.1.6")
	w.look()
	w.shows("dev", "podinfo: Deployment/web 6.1.8* HelmRelease/podinfo 6.1.6* ready")
	w.pipeline("appRef: {apiVersion: v1, kind: Pod, name: web},", here)
	w.look()
	w.says(metav1.ConditionFalse, reasonUnreadable, "pipelines know no versions of objects of kind Pod")
}

func TestWhatIsAboutToBeKnownIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.helmRelease("podinfo", "6.1.6")
	w.pipeline(app, here)
	w.unknown[versions.HelmRelease] = true
	w.look()
	if len(w.writes) > 0 {
		t.Errorf("written are %v", w.writes)
	}
	w.unknown[versions.HelmRelease] = false
	w.look()
	w.shows("dev", "podinfo: HelmRelease/podinfo 6.1.6* ready")
	w.unknown[versions.HelmRelease] = true
	w.restart()
	w.look()
	w.clock.Step(first)
	w.look()
	w.shows("dev", "podinfo: HelmRelease/podinfo 6.1.6* ready") // as before
	w.clock.Step(patience)
	w.look()
	w.shows("dev", "podinfo: HelmRelease/podinfo 6.1.6")
	w.restart()
	w.pipeline("appRef: {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: another},", here)
	writes := len(w.writes)
	w.look() // what was told is not about that
	w.clock.Step(first)
	w.look()
	if told := w.told(); len(w.writes) != writes+1 || told.ObservedGeneration != 2 || told.Environments["dev"].Targets[0].Error == "" {
		t.Errorf("%d were written, and told is %+v", len(w.writes)-writes, told)
	}
	w.says(metav1.ConditionFalse, reasonUnreadable, "not known yet")
}

func placed(d *appsv1.Deployment, decision, status string) {
	d.Annotations = map[string]string{manifold.AnnotationPlacement: decision, manifold.AnnotationStatus: status}
}

func TestATargetInAClusterShowsWhatComesFromTheLogicalClusterAsItIsThere(t *testing.T) {
	w := newWorld(t)
	w.deployment("podinfo", "web", "6.1.8", func(d *appsv1.Deployment) {
		placed(d, `{"dev":{"replicas":1},"prod":{"replicas":2}}`, `{"dev":{"replicas":1,"ready":1,"available":1,"updated":1,"generation":1},"prod":{"replicas":2,"ready":1,"available":1,"updated":2,"generation":1}}`)
	})
	w.deployment("podinfo", "api", "1", func(d *appsv1.Deployment) {
		placed(d, `{"dev":{"replicas":1}}`, `{"dev":{"problem":"quota exceeded"}}`)
	})
	application := &delivery.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "podinfo", Name: "shop", Labels: map[string]string{weave.PipelineLabel: "podinfo"}}}
	application.Status.Targets = []delivery.TargetStatus{{Name: "all", Clusters: []delivery.TargetClusterStatus{{Name: "prod", Revision: "shop-v2", LiveRevision: "shop-v1", Health: delivery.Healthy, Sync: delivery.OutOfSync, Message: "behind"}}}}
	w.add(w.workloads[versions.Application], application)
	w.pipeline("", over)
	w.look()
	w.shows("dev", "dev/podinfo: Deployment/api 1 Deployment/web 6.1.8*")
	w.shows("prod", "prod/podinfo: Application/shop shop-v2 Deployment/web 6.1.8")
	targets := w.told().Environments["dev"].Targets
	if ref := targets[0].ClusterRef; targets[0].Kind != "GitopsCluster" || ref == nil || ref.Name != "dev" || !targets[0].Workloads[0].Failed || targets[0].Workloads[0].Message != "quota exceeded" {
		t.Errorf("of dev is told %+v", targets)
	}
	prod := w.told().Environments["prod"].Targets[0].Workloads
	if prod[0].LastAppliedRevision != "shop-v1" || prod[1].Message != "2 of 2 pods are updated, and 1 available" {
		t.Errorf("of prod is told %+v", prod)
	}
}

func TestCopiesOfCustomObjectsAreShownAsTheyAreInTheirCluster(t *testing.T) {
	w := newWorld(t)
	release := w.helmRelease("podinfo", "6.1.6")
	w.pipeline("", over)
	for name, test := range map[string]struct{ decision, status, dev, prod string }{
		"in one cluster, whose status it has": {
			`{"dev":{"replicas":0}}`, `{"dev":{"generation":1,"state":"Ready"}}`, "dev/podinfo: HelmRelease/podinfo 6.1.6* ready", "prod/podinfo:",
		},
		"in two, of which one is behind": {
			`{"dev":{"replicas":0},"prod":{"replicas":0}}`, `{"dev":{"generation":1,"status":{"lastAppliedRevision":"6.1.6"}},"prod":{"generation":1,"unready":true,"state":"Progressing","status":{"lastAppliedRevision":"6.1.5"}}}`,
			"dev/podinfo: HelmRelease/podinfo 6.1.6* ready", "prod/podinfo: HelmRelease/podinfo 6.1.6",
		},
		"in one that has not taken it up": {`{"prod":{"replicas":0}}`, `{"prod":{"generation":0}}`, "dev/podinfo:", "prod/podinfo: HelmRelease/podinfo 6.1.6"},
	} {
		t.Run(name, func(t *testing.T) {
			release.SetAnnotations(map[string]string{manifold.AnnotationPlacement: test.decision, manifold.AnnotationStatus: test.status})
			w.keep(release)
			w.T = t
			w.look()
			w.shows("dev", test.dev)
			w.shows("prod", test.prod)
		})
	}
}

// alone is what a cluster has by itself.
func alone(version string, labels map[string]string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","metadata":{"name":"podinfo","namespace":"podinfo","generation":1},"spec":{"chart":{"spec":{"version":%[1]q}}},
"status":{"observedGeneration":1,"lastAppliedRevision":%[1]q,"conditions":[{"type":"Ready","status":"True"}]}}`, version)
	if err := json.Unmarshal([]byte(text), &out.Object); err != nil {
		panic(err)
	}
	_ = unstructured.SetNestedField(out.Object, int64(1), "metadata", "generation")
	_ = unstructured.SetNestedField(out.Object, int64(1), "status", "observedGeneration")
	out.SetLabels(labels)
	return out
}

var release = Sight{Resource: schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}, Namespace: "podinfo", Name: "podinfo"}

func TestW41WhatFluxRunsInClustersIsShownWhereTheirAdminsAllowIt(t *testing.T) {
	w := newWorld(t)
	w.undefine(versions.HelmRelease)
	w.pipeline(app, over)
	w.look()
	w.says(metav1.ConditionFalse, reasonUnreadable, `to show what others run in the cluster: manifold cluster join dev --cluster-kubeconfig FILE --allow-pipelines`)
	w.cluster("dev", allowed)
	w.cluster("prod", allowed)
	w.there["dev"] = map[Sight]Seen{release: {Objects: []*unstructured.Unstructured{alone("6.1.6", nil)}}}
	w.there["prod"] = map[Sight]Seen{release: {Objects: []*unstructured.Unstructured{alone("6.1.5", nil)}}}
	w.look()
	w.shows("dev", "dev/podinfo: HelmRelease/podinfo 6.1.6* ready")
	w.shows("prod", "prod/podinfo: HelmRelease/podinfo 6.1.5* ready")
	w.says(metav1.ConditionTrue, reasonShown, "")
	if got := w.wants["uid-of-podinfo"]; len(got) != 2 || len(got["dev"]) != 1 || got["dev"][0] != release {
		t.Errorf("wanted is %v, want the app alone", got)
	}
	w.there["prod"] = map[Sight]Seen{release: {Problem: "no right"}}
	w.look()
	w.shows("dev", "dev/podinfo: HelmRelease/podinfo 6.1.6* ready")
	w.shows("prod", "prod/podinfo: HelmRelease/podinfo 6.1.5") // what was seen last
	w.says(metav1.ConditionFalse, reasonUnreadable, "no right")
	w.cluster("prod", nil)
	w.look()
	if got := w.wants["uid-of-podinfo"]; len(got) != 1 {
		t.Errorf("wanted is %v although prod allows it no more", got)
	}
}

func TestLabelsOfAPipelineAreLookedForInItsTargetsAlone(t *testing.T) {
	w := newWorld(t)
	w.cluster("dev", allowed)
	w.pipeline("", `[{name: dev, targets: [{namespace: podinfo, clusterRef: {kind: Cluster, name: dev}}, {namespace: there, clusterRef: {kind: Cluster, name: dev}}]}]`)
	of := Sight{Resource: release.Resource, Namespace: "podinfo", Label: weave.PipelineLabel}
	w.there["dev"] = map[Sight]Seen{of: {Objects: []*unstructured.Unstructured{
		alone("6.1.6", map[string]string{weave.PipelineLabel: "podinfo"}), alone("1", map[string]string{weave.PipelineLabel: "another"}),
		alone("2", map[string]string{weave.PipelineLabel: "podinfo", manifold.LabelLogicalCluster: logical}),
	}}, {Resource: namespaces, Name: "there"}: {}}
	w.look()
	w.shows("dev", "dev/podinfo: HelmRelease/podinfo 6.1.6* ready", "dev/there:")
	w.says(metav1.ConditionFalse, reasonUnreadable, `there is no namespace "there" in cluster "dev"`)
	got := map[string]int{}
	for _, sight := range w.wants["uid-of-podinfo"]["dev"] {
		got[sight.Namespace+" "+sight.Resource.Resource]++
	}
	want := map[string]int{" namespaces": 1}
	for _, namespace := range []string{"podinfo", "there"} {
		for _, resource := range []string{"helmreleases", "deployments", "statefulsets", "daemonsets", "cronjobs"} {
			want[namespace+" "+resource] = 2 // in both spellings
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("wanted are %v, want %v", got, want)
	}
	w.customs[schema.GroupKind{Group: weave.Group, Kind: weave.Kind}] = nil
	w.look()
	if got := w.wants["uid-of-podinfo"]; len(got) > 0 || len(w.known.memories)+len(w.known.byPlace)+len(w.known.byCluster)+len(w.known.byNamespace) > 0 {
		t.Errorf("the pipeline is gone, and wanted is %v", got)
	}
}

func TestOfASilentClusterIsShownWhatWasSeenLast(t *testing.T) {
	w := newWorld(t)
	w.cluster("dev", allowed)
	w.there["dev"] = map[Sight]Seen{release: {Objects: []*unstructured.Unstructured{alone("6.1.6", nil)}}}
	w.pipeline(app, over)
	w.look()
	w.cluster("dev", func(c *manifold.Cluster) { allowed(c); silent(c) })
	w.restart()
	w.look()
	w.shows("dev", "dev/podinfo: HelmRelease/podinfo 6.1.6")
	if got := w.told().Environments["dev"].Targets[0]; !strings.Contains(got.Error, `cluster "dev" does not answer`) || got.Workloads[0].Message != lastSeen {
		t.Errorf("told is %+v", got)
	}
	w.says(metav1.ConditionUnknown, reasonSilent, `cluster "dev" does not answer`)
	writes := len(w.writes)
	w.look()
	if len(w.writes) != writes {
		t.Errorf("it is still silent, and written is %s", w.writes[writes:])
	}
	w.cluster("dev", allowed)
	w.look()
	w.shows("dev", "dev/podinfo: HelmRelease/podinfo 6.1.6* ready")
	w.says(metav1.ConditionTrue, reasonShown, "")
}

func TestAPipelineThatDoesNotReadSaysSo(t *testing.T) {
	w := newWorld(t)
	w.apply("apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {name: podinfo, namespace: flux}\nspec: {environments: 7}")
	w.look()
	w.says(metav1.ConditionFalse, reasonInvalid, "spec: ")
}

func TestWhatIsToldIsBounded(t *testing.T) {
	w := newWorld(t)
	for i := range 80 {
		w.deployment("podinfo", fmt.Sprintf("web-%02d", i), strings.Repeat("v", 500), func(d *appsv1.Deployment) {
			if i >= 60 {
				d.Status.ReadyReplicas = 0
			}
		})
	}
	w.pipeline("", here)
	w.look()
	target := w.told().Environments["dev"].Targets[0]
	if len(target.Workloads) != mostWorkloads || target.MoreWorkloads != 30 || target.Ready || target.Workloads[0].Ready {
		t.Errorf("%d are told of, and %d more; the first is %s", len(target.Workloads), target.MoreWorkloads, target.Workloads[0].Name)
	}
	many := map[string][]weave.TargetStatus{}
	for e := range 8 {
		for range 32 {
			of := weave.TargetStatus{Namespace: "podinfo"}
			for i := range 40 {
				of.Workloads = append(of.Workloads, weave.WorkloadStatus{Kind: "Deployment", Name: fmt.Sprint(i), Version: strings.Repeat("v", 1000), Ready: true})
			}
			many[fmt.Sprint(e)] = append(many[fmt.Sprint(e)], of)
		}
	}
	fit(many)
	stored, err := json.Marshal(many)
	if err != nil || len(stored) > mostBytes {
		t.Errorf("%d bytes are told: %v", len(stored), err)
	}
	if first := many["0"][0]; len(first.Workloads)+int(first.MoreWorkloads) != 40 {
		t.Errorf("%d are told of, and %d more", len(first.Workloads), first.MoreWorkloads)
	}
}

// authored has podinfo say who has named a target.
func (w *world) authored(note string) {
	o := w.customs[schema.GroupKind{Group: weave.Group, Kind: weave.Kind}][podinfo.ObjectName.String()]
	o.SetAnnotations(map[string]string{manifold.AnnotationAuthors: note})
	w.keep(o)
}

func TestATargetIsShownForAsLongAsItsAuthorMaySeeIt(t *testing.T) {
	w := newWorld(t)
	w.cluster("dev", allowed)
	w.cluster("prod", allowed)
	w.there["dev"], w.there["prod"] = map[Sight]Seen{}, map[Sight]Seen{}
	w.helmRelease("podinfo", "6.1.8")
	w.pipeline(app, `[{name: dev, targets: [{namespace: podinfo}, {namespace: podinfo, clusterRef: {kind: Cluster, name: dev}}]}, {name: prod, targets: [{namespace: podinfo, clusterRef: {kind: Cluster, name: prod}}]}]`)
	w.authored(`[{"user": "ann", "targets": ["podinfo", "dev/podinfo"]}, {"user": "joe", "targets": ["prod/podinfo"]}]`)
	w.look()
	w.shows("dev", "podinfo: HelmRelease/podinfo 6.1.8* ready", "dev/podinfo:")
	if wants := w.wants["uid-of-podinfo"]; len(wants["dev"]) == 0 || len(wants["prod"]) == 0 {
		t.Fatalf("it wants to see %v", wants)
	}

	w.lost = []string{`ann list helmreleases.helm.toolkit.fluxcd.io in namespace "podinfo"`}
	w.look()
	w.shows("dev", "podinfo:", "dev/podinfo:")
	w.says(metav1.ConditionFalse, "AuthorLacksRight", `"ann", who has named this target, has lost the right to list helmreleases.helm.toolkit.fluxcd.io in namespace "podinfo"`)
	if targets := w.told().Environments["dev"].Targets; !targets[0].Denied || !targets[1].Denied || targets[0].Ready {
		t.Errorf("of dev is told %+v", targets)
	}
	if prod := w.told().Environments["prod"].Targets[0]; prod.Denied {
		t.Errorf("of the target of another author is told %+v", prod)
	}
	if wants := w.wants["uid-of-podinfo"]; len(wants["dev"]) > 0 || len(wants["prod"]) == 0 {
		t.Errorf("it wants to see %v, and its authors may see what is in prod alone", wants)
	}

	w.lost = nil
	w.look()
	w.shows("dev", "podinfo: HelmRelease/podinfo 6.1.8* ready", "dev/podinfo:")
	if w.told().Environments["dev"].Targets[0].Denied {
		t.Error("the right was given back, and the target is denied")
	}
}

func TestWhatIsUsedWithoutARightIsDeniedUntilItIsGivenBack(t *testing.T) {
	w := newWorld(t)
	w.helmRelease("podinfo", "6.1.8")
	w.pipeline(app, `[{name: dev, targets: [{namespace: podinfo}]}, {name: prod, targets: [{namespace: podinfo}], promotion: {strategy: {direct: {serviceAccountName: promoter}, secretRef: {name: hook}}}}]`)
	w.authored(`[{"user": "ann", "uses": ["serviceaccounts/promoter"]}, {"user": "joe", "uses": ["secrets/hook"]}]`)
	w.look()
	denied := func() string {
		prod := w.told().Environments["prod"]
		if dev := w.told().Environments["dev"]; dev.Denied+dev.WebhookDenied != "" {
			t.Errorf("nothing is promoted to dev, and it is denied: %+v", dev)
		}
		return prod.Denied + "|" + prod.WebhookDenied
	}
	const ann, joe = `ann impersonate serviceaccounts "promoter" in namespace "flux"`, `joe get secrets "hook" in namespace "flux"`
	const annLost = `"ann", who has this pipeline use it, has lost the right to impersonate serviceaccounts "promoter" in namespace "flux": give it back, or have somebody write the pipeline who has it`
	const joeLost = `"joe", who has this pipeline use it, has lost the right to get secrets "hook" in namespace "flux": give it back, or have somebody write the pipeline who has it`
	for _, test := range []struct {
		lost []string
		want string
	}{{nil, "|"}, {[]string{ann}, annLost + "|"}, {[]string{ann, joe}, annLost + "|" + joeLost}, {[]string{joe}, "|" + joeLost}, {nil, "|"}} {
		w.lost = test.lost
		w.look()
		if got := denied(); got != test.want {
			t.Errorf("without %v is told %s, want %s", test.lost, got, test.want)
		}
		w.shows("dev", "podinfo: HelmRelease/podinfo 6.1.8* ready")
		w.writes = nil
		w.look()
		if len(w.writes) > 0 {
			t.Errorf("nothing has changed, and there is written %v", w.writes)
		}
	}
}

func TestWhoeverLosesARightIsNoticedByAWatchOfRBAC(t *testing.T) {
	w := newWorld(t)
	w.pipeline(app, `[{name: dev, targets: [{namespace: podinfo}]}]`)
	w.look()
	for name, test := range map[string]struct {
		object metav1.Object
		want   bool
	}{
		"a RoleBinding there":             {&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "podinfo", Name: "a"}}, true},
		"a Role there":                    {&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "podinfo", Name: "a"}}, true},
		"a RoleBinding beside it":         {&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "a"}}, true},
		"a RoleBinding elsewhere":         {&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "farm", Name: "a"}}, false},
		"a ClusterRole":                   {&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, true},
		"a ClusterRoleBinding of anybody": {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, true},
	} {
		w.begun()
		w.rightChanged(test.object)
		if got := w.woken(); got != test.want {
			t.Errorf("%s: looked at is %t, want %t", name, got, test.want)
		}
	}
}

// What concerns nobody wakes nobody.
func TestAChangeIsLookedAtByThoseWhomItConcerns(t *testing.T) {
	w := newWorld(t)
	w.pipeline(app, `[{name: dev, targets: [{namespace: podinfo}, {namespace: shop, clusterRef: {kind: Cluster, name: dev}}]}]`)
	w.look()
	object := func(namespace, name, version string, labels map[string]string) metav1.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: version, Labels: labels}}
	}
	part := map[string]string{weave.OlderPipelineLabel: "podinfo"}
	seen := func(name string, labels map[string]string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{}
		out.SetName(name)
		out.SetLabels(labels)
		return out
	}
	in := Sight{Namespace: "shop", Label: weave.PipelineLabel}
	for name, test := range map[string]struct {
		change func()
		want   bool
	}{
		"one with the label":                    {func() { w.changed(nil, object("podinfo", "web", "1", part)) }, true},
		"one that has lost it":                  {func() { w.changed(object("podinfo", "web", "1", part), object("podinfo", "web", "2", nil)) }, true},
		"one that is gone":                      {func() { w.changed(object("shop", "web", "1", part), nil) }, true},
		"the app":                               {func() { w.changed(nil, object("shop", "podinfo", "1", nil)) }, true},
		"one that is told again":                {func() { w.changed(object("podinfo", "web", "1", part), object("podinfo", "web", "1", part)) }, false},
		"another":                               {func() { w.changed(nil, object("podinfo", "web", "1", nil)) }, false},
		"one of another namespace":              {func() { w.changed(nil, object("flux", "podinfo", "1", part)) }, false},
		"one in a cluster":                      {func() { w.SightChanged("dev", in, nil, seen("web", part)) }, true},
		"all in a cluster":                      {func() { w.SightChanged("dev", in, nil, nil) }, true},
		"the namespace in a cluster":            {func() { w.SightChanged("dev", Sight{Resource: namespaces, Name: "shop"}, nil, seen("shop", nil)) }, true},
		"one of another pipeline in a cluster":  {func() { w.SightChanged("dev", in, nil, seen("web", nil)) }, false},
		"one in another cluster":                {func() { w.SightChanged("prod", in, nil, seen("web", part)) }, false},
		"one in another namespace of a cluster": {func() { w.SightChanged("dev", Sight{Namespace: "podinfo"}, nil, seen("web", part)) }, false},
	} {
		w.begun()
		test.change()
		if got := w.woken(); got != test.want {
			t.Errorf("%s: looked at is %t, want %t", name, got, test.want)
		}
	}
	for name, test := range map[string]struct {
		change func(*manifold.Cluster)
		want   bool
	}{
		"silence":            {silent, true},
		"that it is allowed": {allowed, true},
		"load":               {func(c *manifold.Cluster) { c.Status.KubernetesVersion = "v1.99" }, false},
	} {
		before, after := &manifold.Cluster{}, &manifold.Cluster{}
		before.Status.Conditions = []metav1.Condition{{Type: manifold.ClusterReady, Status: metav1.ConditionTrue}}
		before.DeepCopyInto(after)
		test.change(after)
		if got := matters(before, after); got != test.want {
			t.Errorf("%s of a cluster matters: %t", name, got)
		}
	}
}

// begun has nothing waiting to be looked at.
func (w *world) begun() {
	w.queue = &noted{TypedRateLimitingInterface: w.queue}
}

func (w *world) woken() bool {
	out := w.queue.(*noted)
	w.queue = out.TypedRateLimitingInterface
	return slices.Contains(out.keys, podinfo)
}
