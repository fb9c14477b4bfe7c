package pipelines

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// in makes a custom resource of a group.
func in(t *testing.T, group string, p *weave.Pipeline) *unstructured.Unstructured {
	t.Helper()
	p.APIVersion, p.Kind, p.UID, p.ResourceVersion = group+"/v1alpha1", weave.Kind, "u", "7"
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func clientOf(pipelines ...runtime.Object) *fake.FakeDynamicClient {
	kinds := map[schema.GroupVersionResource]string{}
	for _, version := range weave.GroupVersions {
		kinds[version.WithResource(weave.Resource)] = "PipelineList"
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, pipelines...)
}

func as(t *testing.T, name string) context.Context {
	return request.WithUser(request.WithNamespace(t.Context(), "shop"), &user.DefaultInfo{Name: name})
}

func post(ctx context.Context, client *fake.FakeDynamicClient, subresource string, body runtime.Object, options metav1.CreateOptions) (runtime.Object, error) {
	storage := Storage(client, testingclock.NewFakePassiveClock(noon.Time))
	return storage["pipelines/"+subresource].(rest.NamedCreater).Create(ctx, "podinfo", body, rest.ValidateAllObjectFunc, &options)
}

// patches are those that were made.
func patches(client *fake.FakeDynamicClient) []clienttesting.PatchAction {
	var out []clienttesting.PatchAction
	for _, action := range client.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok {
			out = append(out, patch)
		}
	}
	return out
}

func TestThePipelineIsFoundInTheGroupThatHasIt(t *testing.T) {
	newer, older := func() runtime.Object { return in(t, weave.Group, podinfo()) }, func() runtime.Object { return in(t, weave.OlderGroup, podinfo()) }
	for name, test := range map[string]struct {
		there         []runtime.Object
		group         string
		want, refusal string
	}{
		"in the newer":                   {there: []runtime.Object{newer()}, want: weave.Group},
		"in the older":                   {there: []runtime.Object{older()}, want: weave.OlderGroup},
		"in both, of which one is named": {there: []runtime.Object{newer(), older()}, group: weave.OlderGroup, want: weave.OlderGroup},
		"in both, and none is named":     {there: []runtime.Object{newer(), older()}, refusal: "group: Required value: each of"},
		"in the one that is not named":   {there: []runtime.Object{newer()}, group: weave.OlderGroup, refusal: `"podinfo" not found`},
		"in none":                        {refusal: `pipelines.delivery.manifold.dev "podinfo" not found`},
		"in a group that is none":        {there: []runtime.Object{newer()}, group: "tekton.dev", refusal: `group: Unsupported value: "tekton.dev"`},
	} {
		t.Run(name, func(t *testing.T) {
			client := clientOf(test.there...)
			got, err := post(as(t, "jane"), client, "promote", &v1alpha1.PipelinePromotion{Environment: "prod", Group: test.group}, metav1.CreateOptions{})
			if test.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), test.refusal) || len(patches(client)) > 0 {
					t.Errorf("%v after %d writes, want a refusal: %s", err, len(patches(client)), test.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			answer := got.(*v1alpha1.PipelinePromotion)
			if answer.Group != test.want || answer.Name != "podinfo" || answer.Namespace != "shop" || answer.Revision != "6.1.6" || answer.Recorded.By != "jane" || !answer.Recorded.At.Equal(&noon) {
				t.Errorf("answered %+v, want the promotion of 6.1.6 in %s by jane", answer, test.want)
			}
			if written := patches(client); len(written) != 1 || written[0].GetResource().Group != test.want {
				t.Errorf("written is %v, want one patch in %s", written, test.want)
			}
		})
	}
}

func TestWhatIsAskedIsWrittenToTheStatusAndNothingBeside(t *testing.T) {
	client := clientOf(in(t, weave.Group, podinfo()))
	if _, err := post(as(t, "jane"), client, "promote", &v1alpha1.PipelinePromotion{Environment: "prod", Message: "go"}, metav1.CreateOptions{DryRun: []string{"All"}}); err != nil {
		t.Fatal(err)
	}
	patch := patches(client)[0]
	const want = `{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"environments":{"prod":{"asked":{"at":"2026-01-02T12:00:00Z","by":"jane","message":"go","revision":"6.1.6"}}}}}`
	if got := string(patch.GetPatch()); got != want || patch.GetSubresource() != "status" {
		t.Errorf("%s is patched by\n%s, want\n%s", patch.GetSubresource(), got, want)
	}
	if options := patch.(clienttesting.PatchActionImpl).PatchOptions; !slices.Equal(options.DryRun, []string{"All"}) {
		t.Errorf("a dry run is passed on as %v", options.DryRun)
	}
}

func TestAPromotionIsDecidedAnewWhenSomebodyElseHasWritten(t *testing.T) {
	client := clientOf(in(t, weave.Group, podinfo()))
	met := 0
	client.PrependReactor("patch", "pipelines", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if met++; met > 1 {
			return false, nil, nil
		}
		// Meanwhile another version has come to wait, and the older one waits no more.
		next := podinfo()
		next.Status.Environments["prod"].WaitingStatus.Revision = "6.1.9"
		if err := client.Tracker().Update(action.GetResource(), in(t, weave.Group, next), "shop"); err != nil {
			t.Error(err)
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "pipelines"}, "podinfo", errors.New("changed"))
	})
	got, err := post(as(t, "jane"), client, "promote", &v1alpha1.PipelinePromotion{Environment: "prod"}, metav1.CreateOptions{})
	if err != nil || got.(*v1alpha1.PipelinePromotion).Revision != "6.1.9" || met != 2 {
		t.Errorf("%v, %v after %d writes; want what waits by then", got, err, met)
	}
}

func TestConflictsWithoutAnEndAreTold(t *testing.T) {
	client := clientOf(in(t, weave.Group, podinfo()))
	client.PrependReactor("patch", "pipelines", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "pipelines"}, "podinfo", errors.New("changed"))
	})
	_, err := post(as(t, "jane"), client, "pause", &v1alpha1.PipelinePause{}, metav1.CreateOptions{})
	if err == nil || !apierrors.IsConflict(err) || len(patches(client)) != attempts {
		t.Errorf("%v after %d writes, want a conflict after %d", err, len(patches(client)), attempts)
	}
}

func TestNothingIsWrittenWhereNothingChanges(t *testing.T) {
	client := clientOf(in(t, weave.Group, paused()))
	got, err := post(as(t, "jane"), client, "pause", &v1alpha1.PipelinePause{Message: "mine"}, metav1.CreateOptions{})
	if err != nil || got.(*v1alpha1.PipelinePause).Recorded.By != "alice" || len(patches(client)) > 0 {
		t.Errorf("%+v, %v after %d writes; want alice's pause as it is", got, err, len(patches(client)))
	}
	client = clientOf(in(t, weave.Group, podinfo()))
	if got, err := post(as(t, "jane"), client, "resume", &v1alpha1.PipelineResumption{}, metav1.CreateOptions{}); err != nil || got.(*v1alpha1.PipelineResumption).Recorded != nil || len(patches(client)) > 0 {
		t.Errorf("%+v, %v after %d writes; want nothing", got, err, len(patches(client)))
	}
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	client := clientOf(in(t, weave.Group, podinfo()))
	other := &v1alpha1.PipelinePause{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	if _, err := post(as(t, "jane"), client, "pause", other, metav1.CreateOptions{}); !apierrors.IsBadRequest(err) {
		t.Errorf("a body about another pipeline: %v", err)
	}
	if _, err := post(request.WithNamespace(t.Context(), "shop"), client, "pause", &v1alpha1.PipelinePause{}, metav1.CreateOptions{}); err == nil {
		t.Error("nobody has paused it")
	}
	refused := errors.New("by a webhook")
	storage := Storage(client, testingclock.NewFakePassiveClock(noon.Time))
	_, err := storage["pipelines/pause"].(rest.NamedCreater).Create(as(t, "jane"), "podinfo", &v1alpha1.PipelinePause{},
		func(context.Context, runtime.Object) error { return refused }, &metav1.CreateOptions{})
	if !errors.Is(err, refused) || len(patches(client)) > 0 {
		t.Errorf("%v after %d writes, want the refusal of admission", err, len(patches(client)))
	}
}

func TestAPauseThatEndsLeavesTheStatus(t *testing.T) {
	client := clientOf(in(t, weave.Group, paused()))
	if _, err := post(as(t, "jane"), client, "resume", &v1alpha1.PipelineResumption{}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var patch struct {
		Status map[string]json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(patches(client)[0].GetPatch(), &patch); err != nil || len(patch.Status) != 1 || string(patch.Status["paused"]) != "null" {
		t.Errorf("patched by %s: %v; want paused taken off", patches(client)[0].GetPatch(), err)
	}
}

func TestTheAuditLogTellsWhatWasRecorded(t *testing.T) {
	ctx := audit.WithAuditContext(as(t, "jane"))
	log := audit.AuditContextFrom(ctx)
	if err := log.Init(audit.RequestAuditConfig{Level: auditinternal.LevelMetadata}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := post(ctx, clientOf(in(t, weave.OlderGroup, podinfo())), "promote", &v1alpha1.PipelinePromotion{Environment: "prod"}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pipeline, _ := log.GetEventAnnotation(auditPipeline)
	changed, _ := log.GetEventAnnotation(auditChange)
	if pipeline != "pipelines.pipelines.wego.weave.works/podinfo" || !strings.Contains(changed, `"prod":{"asked":{"at":"2026-01-02T12:00:00Z","by":"jane","message":null,"revision":"6.1.6"}}`) {
		t.Errorf("it tells of %q that %s", pipeline, changed)
	}
}

// TestADefinitionThatDropsWhatIsAskedIsToldOf is about definitions of others, whose schema says nothing of what people ask.
func TestADefinitionThatDropsWhatIsAskedIsToldOf(t *testing.T) {
	client := clientOf(in(t, weave.Group, podinfo()))
	client.PrependReactor("patch", "pipelines", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, in(t, weave.Group, podinfo()), nil
	})
	_, err := post(as(t, "jane"), client, "promote", &v1alpha1.PipelinePromotion{Environment: "prod"}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "keeps no status.environments.prod.asked") {
		t.Errorf("a promotion: %v", err)
	}
	_, err = post(as(t, "jane"), client, "pause", &v1alpha1.PipelinePause{}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "keeps no status.paused") {
		t.Errorf("a pause: %v", err)
	}
}
