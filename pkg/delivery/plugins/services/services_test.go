package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/calls"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

// stageValue is a value of the stage copy, or how it is refused.
func stageValue(t *testing.T, of pipedservice.PluginServiceClient, stage, key string) string {
	t.Helper()
	got, err := of.GetStageMetadata(t.Context(), &pipedservice.GetStageMetadataRequest{DeploymentId: "uid-web-1", StageId: stage, Key: key})
	switch {
	case err != nil:
		return status.Code(err).String()
	case !got.Found:
		return "not found"
	}
	return got.Value
}

func putStage(ctx context.Context, of pipedservice.PluginServiceClient, stage, key, value string) error {
	_, err := of.PutStageMetadata(ctx, &pipedservice.PutStageMetadataRequest{DeploymentId: "uid-web-1", StageId: stage, Key: key, Value: value})
	return err
}

func TestWhatIsKeptOfAStageSurvivesRestarts(t *testing.T) {
	w := newWorld(t)
	toy := w.as("toy")
	w.is(putStage(t.Context(), toy, "copy", "both", "kept"), codes.OK)
	must[*pipedservice.PutStageMetadataMultiResponse](t)(toy.PutStageMetadataMulti(t.Context(), &pipedservice.PutStageMetadataMultiRequest{
		DeploymentId: "uid-web-1", StageId: "copy", Metadata: map[string]string{"a": "1", "b": "2"},
	}))
	w.restart()
	toy = w.as("toy")
	for key, want := range map[string]string{"both": "kept", "a": "1", "b": "2", "planned": "yes", "none": "not found", "": "InvalidArgument"} {
		if got := stageValue(t, toy, "copy", key); got != want {
			t.Errorf("%q is %q, want %q", key, got, want)
		}
	}
	records := must[*v1alpha1.PluginRecordList](t)(w.client.DeliveryV1alpha1().PluginRecords("shop").List(t.Context(), metav1.ListOptions{}))
	if len(records.Items) != 1 || records.Items[0].OwnerReferences[0].Kind != "Release" || records.Items[0].OwnerReferences[0].UID != "uid-web-1" {
		t.Errorf("kept are %+v", records.Items)
	}
}

func TestTheNextAttemptAtAStageBeginsWithoutWhatWasKept(t *testing.T) {
	w := newWorld(t)
	toy := w.as("toy")
	w.is(putStage(t.Context(), toy, "copy", "a", "1"), codes.OK)
	w.flying["copy"] = calls.InFlight{Release: w.release("web-1", "web", nil), Plugin: "toy", Attempt: 2, Entry: 1}
	if got := stageValue(t, toy, "copy", "a"); got != "not found" {
		t.Errorf("it finds %q", got)
	}
	w.is(putStage(t.Context(), toy, "copy", "b", "2"), codes.OK)
	if a, b := stageValue(t, toy, "copy", "a"), stageValue(t, toy, "copy", "b"); a != "not found" || b != "2" {
		t.Errorf("then it finds %q and %q", a, b)
	}
}

func TestWhatIsKeptOfAReleaseAndOfAnApplication(t *testing.T) {
	w := newWorld(t)
	toy := w.as("toy")
	must[*pipedservice.PutDeploymentPluginMetadataResponse](t)(toy.PutDeploymentPluginMetadata(t.Context(), &pipedservice.PutDeploymentPluginMetadataRequest{DeploymentId: "uid-web-1", PluginName: "toy", Key: "a", Value: "1"}))
	must[*pipedservice.PutDeploymentPluginMetadataMultiResponse](t)(toy.PutDeploymentPluginMetadataMulti(t.Context(), &pipedservice.PutDeploymentPluginMetadataMultiRequest{DeploymentId: "uid-web-1", PluginName: "toy", Metadata: map[string]string{"b": "2"}}))
	_, err := toy.GetApplicationSharedObject(t.Context(), &pipedservice.GetApplicationSharedObjectRequest{ApplicationId: "uid-web", PluginName: "toy", Key: "o"})
	w.is(err, codes.NotFound)
	must[*pipedservice.PutApplicationSharedObjectResponse](t)(toy.PutApplicationSharedObject(t.Context(), &pipedservice.PutApplicationSharedObjectRequest{ApplicationId: "uid-web", PluginName: "toy", Key: "o", Object: []byte{0, 255}}))
	w.restart()
	toy = w.as("toy")
	for key, want := range map[string]string{"a": "1", "b": "2", "c": ""} {
		got := must[*pipedservice.GetDeploymentPluginMetadataResponse](t)(toy.GetDeploymentPluginMetadata(t.Context(), &pipedservice.GetDeploymentPluginMetadataRequest{DeploymentId: "uid-web-1", PluginName: "toy", Key: key}))
		if got.Value != want || got.Found != (want != "") {
			t.Errorf("%s is %v, want %q", key, got, want)
		}
	}
	object := must[*pipedservice.GetApplicationSharedObjectResponse](t)(toy.GetApplicationSharedObject(t.Context(), &pipedservice.GetApplicationSharedObjectRequest{ApplicationId: "uid-web", PluginName: "toy", Key: "o"}))
	if !slices.Equal(object.Object, []byte{0, 255}) {
		t.Errorf("the object is %v", object.Object)
	}
	shared := must[*pipedservice.GetDeploymentSharedMetadataResponse](t)(toy.GetDeploymentSharedMetadata(t.Context(), &pipedservice.GetDeploymentSharedMetadataRequest{DeploymentId: "uid-web-1", Key: "x"}))
	if shared.Found {
		t.Errorf("the host says %v", shared)
	}
}

func TestAPluginNamesItselfAsItKnowsItself(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Called = func(plugin string) string { return "the_" + plugin } })
	toy := w.as("toy")
	for name, want := range map[string]codes.Code{"the_toy": codes.OK, "toy": codes.OK, "": codes.OK, "the_other": codes.PermissionDenied, "other": codes.PermissionDenied} {
		_, err := toy.GetDeploymentPluginMetadata(t.Context(), &pipedservice.GetDeploymentPluginMetadataRequest{DeploymentId: "uid-web-1", PluginName: name, Key: "a"})
		if status.Code(err) != want {
			t.Errorf("as %q: %v, want %s", name, err, want)
		}
	}
}

// A plugin that knows the IDs of all gets at nothing that is another one's.
func TestAPluginGetsAtNothingOfAnotherOne(t *testing.T) {
	w := newWorld(t)
	w.release("api-1", "api", func(r *v1alpha1.Release) {
		r.Status.Plan.Stages, r.Status.Plan.Plugins = []v1alpha1.Stage{{ID: "look", Name: "OTHER_LOOK", Plugin: "other"}}, []v1alpha1.PlannedPlugin{{Name: "other"}}
	})
	w.release("api-2", "api", func(r *v1alpha1.Release) { r.Status = v1alpha1.ReleaseStatus{} }) // which is being planned
	toy, other, ctx := w.as("toy"), w.as("other"), t.Context()
	w.is(putStage(ctx, toy, "copy", "secret", "toy's"), codes.OK)
	w.is(putStage(ctx, other, "look", "secret", "other's"), codes.OK)
	for _, of := range []struct {
		client pipedservice.PluginServiceClient
		name   string
	}{{toy, "toy"}, {other, "other"}} {
		must[*pipedservice.PutDeploymentPluginMetadataResponse](t)(of.client.PutDeploymentPluginMetadata(ctx, &pipedservice.PutDeploymentPluginMetadataRequest{DeploymentId: "uid-web-1", PluginName: of.name, Key: "secret", Value: of.name}))
		must[*pipedservice.PutApplicationSharedObjectResponse](t)(of.client.PutApplicationSharedObject(ctx, &pipedservice.PutApplicationSharedObjectRequest{ApplicationId: "uid-web", PluginName: of.name, Key: "secret", Object: []byte(of.name)}))
	}
	before := len(w.client.Actions())
	type call = func() error
	for name, do := range map[string]call{
		"a value of a stage": func() error {
			_, err := toy.GetStageMetadata(ctx, &pipedservice.GetStageMetadataRequest{DeploymentId: "uid-web-1", StageId: "look", Key: "secret"})
			return err
		},
		"a built-in stage": func() error {
			_, err := toy.GetStageMetadata(ctx, &pipedservice.GetStageMetadataRequest{DeploymentId: "uid-web-1", StageId: "wait", Key: "secret"})
			return err
		},
		"a stage that there isn't": func() error { return putStage(ctx, toy, "lunch", "a", "b") },
		"writing one":              func() error { return putStage(ctx, toy, "look", "secret", "x") },
		"writing some": func() error {
			_, err := toy.PutStageMetadataMulti(ctx, &pipedservice.PutStageMetadataMultiRequest{DeploymentId: "uid-web-1", StageId: "look", Metadata: map[string]string{"a": "b"}})
			return err
		},
		"the stage of another release": func() error {
			_, err := toy.GetStageMetadata(ctx, &pipedservice.GetStageMetadataRequest{DeploymentId: "uid-api-1", StageId: "look", Key: "secret"})
			return err
		},
		"no release": func() error {
			_, err := toy.GetStageMetadata(ctx, &pipedservice.GetStageMetadataRequest{DeploymentId: "uid-none", StageId: "copy", Key: "a"})
			return err
		},
		"a value of the release, in the other's name": func() error {
			_, err := toy.GetDeploymentPluginMetadata(ctx, &pipedservice.GetDeploymentPluginMetadataRequest{DeploymentId: "uid-web-1", PluginName: "other", Key: "secret"})
			return err
		},
		"writing one in the other's name": func() error {
			_, err := toy.PutDeploymentPluginMetadata(ctx, &pipedservice.PutDeploymentPluginMetadataRequest{DeploymentId: "uid-web-1", PluginName: "other", Key: "secret", Value: "x"})
			return err
		},
		"writing some of a release that it takes no part in": func() error {
			_, err := toy.PutDeploymentPluginMetadataMulti(ctx, &pipedservice.PutDeploymentPluginMetadataMultiRequest{DeploymentId: "uid-api-1", PluginName: "toy", Metadata: map[string]string{"a": "b"}})
			return err
		},
		"a release of an application that does not use it": func() error {
			_, err := toy.GetDeploymentPluginMetadata(ctx, &pipedservice.GetDeploymentPluginMetadataRequest{DeploymentId: "uid-api-2", PluginName: "toy", Key: "a"})
			return err
		},
		"what the host says of it": func() error {
			_, err := toy.GetDeploymentSharedMetadata(ctx, &pipedservice.GetDeploymentSharedMetadataRequest{DeploymentId: "uid-api-2", Key: "a"})
			return err
		},
		"an object in the other's name": func() error {
			_, err := toy.GetApplicationSharedObject(ctx, &pipedservice.GetApplicationSharedObjectRequest{ApplicationId: "uid-web", PluginName: "other", Key: "secret"})
			return err
		},
		"an object of an application that does not use it": func() error {
			_, err := toy.PutApplicationSharedObject(ctx, &pipedservice.PutApplicationSharedObjectRequest{ApplicationId: "uid-api", PluginName: "toy", Key: "a", Object: []byte("x")})
			return err
		},
		"what people ask of a stage": func() error {
			_, err := toy.ListStageCommands(ctx, &pipedservice.ListStageCommandsRequest{DeploymentId: "uid-web-1", StageId: "look"})
			return err
		},
		"the log of a stage": func() error {
			_, err := toy.ReportStageLogs(ctx, &pipedservice.ReportStageLogsRequest{DeploymentId: "uid-web-1", StageId: "look", Blocks: []*model.LogBlock{{Index: 1, Log: "forged"}}})
			return err
		},
		"the log of a stage, from the last time on": func() error {
			_, err := toy.ReportStageLogsFromLastCheckpoint(ctx, &pipedservice.ReportStageLogsFromLastCheckpointRequest{DeploymentId: "uid-web-1", StageId: "look", Blocks: []*model.LogBlock{{Index: 1, Log: "forged"}}})
			return err
		},
	} {
		if err := do(); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if asked := w.client.Actions()[before:]; len(asked) > 0 || len(w.said) > 0 {
		t.Errorf("what was refused was asked for all the same: %v, %v", asked, w.said)
	}
	if got := stageValue(t, toy, "copy", "secret"); got != "toy's" {
		t.Errorf("toy has %q", got)
	}
	if got := stageValue(t, other, "look", "secret"); got != "other's" {
		t.Errorf("other has %q", got)
	}
	object := must[*pipedservice.GetApplicationSharedObjectResponse](t)(other.GetApplicationSharedObject(ctx, &pipedservice.GetApplicationSharedObjectRequest{ApplicationId: "uid-web", PluginName: "other", Key: "secret"}))
	if string(object.Object) != "other" {
		t.Errorf("other has the object %s", object.Object)
	}
}

func TestARequestSaysWhatItIsAbout(t *testing.T) {
	w := newWorld(t)
	toy, ctx := w.as("toy"), t.Context()
	_, err := toy.GetStageMetadata(ctx, &pipedservice.GetStageMetadataRequest{StageId: "copy", Key: "a"})
	w.is(err, codes.InvalidArgument)
	_, err = toy.ListStageCommands(ctx, &pipedservice.ListStageCommandsRequest{DeploymentId: "uid-web-1"})
	w.is(err, codes.InvalidArgument)
	_, err = toy.GetDeploymentPluginMetadata(ctx, &pipedservice.GetDeploymentPluginMetadataRequest{PluginName: "toy", Key: "a"})
	w.is(err, codes.InvalidArgument)
	_, err = toy.GetApplicationSharedObject(ctx, &pipedservice.GetApplicationSharedObjectRequest{PluginName: "toy", Key: "a"})
	w.is(err, codes.InvalidArgument)
	_, err = toy.PutApplicationSharedObject(ctx, &pipedservice.PutApplicationSharedObjectRequest{ApplicationId: "uid-web", PluginName: "toy"})
	w.is(err, codes.InvalidArgument)
}

func TestWhatAPluginKeepsHasBounds(t *testing.T) {
	w := newWorld(t)
	toy := w.as("toy")
	w.is(putStage(t.Context(), toy, "copy", "a", strings.Repeat("x", 600<<10)), codes.ResourceExhausted)
	many := map[string]string{}
	for i := range 300 {
		many[fmt.Sprint(i)] = ""
	}
	_, err := toy.PutDeploymentPluginMetadataMulti(t.Context(), &pipedservice.PutDeploymentPluginMetadataMultiRequest{DeploymentId: "uid-web-1", Metadata: many})
	w.is(err, codes.ResourceExhausted)
	w.is(putStage(t.Context(), toy, "copy", "", "x"), codes.ResourceExhausted)
	w.is(putStage(t.Context(), toy, "copy", "a", strings.Repeat("x", 5<<20)), codes.ResourceExhausted)
	if got := stageValue(t, toy, "copy", "a"); got != "not found" {
		t.Errorf("kept are %d bytes", len(got))
	}
}

// Stages of one release may run in the same plugin as what plans another.
func TestNothingIsLostWhenAPluginKeepsMuchAtOnce(t *testing.T) {
	w := newWorld(t)
	toy := w.as("toy")
	var group sync.WaitGroup
	for i := range 3 {
		group.Go(func() {
			for j := range 5 {
				for putStage(w.Context(), toy, "copy", fmt.Sprint(i, "/", j), "x") != nil {
					continue // it has lost the race for too long, and tries again
				}
			}
		})
	}
	group.Wait()
	record := must[*v1alpha1.PluginRecordList](t)(w.client.DeliveryV1alpha1().PluginRecords("shop").List(t.Context(), metav1.ListOptions{})).Items[0]
	if got := slices.Sorted(maps.Keys(record.Spec.Stages[0].Metadata)); len(got) != 15 {
		t.Errorf("kept are %q", got)
	}
}

func TestWhatPeopleAskReachesTheStageThatAsks(t *testing.T) {
	w := newWorld(t)
	toy := w.as("toy")
	at := metav1.Unix(1000, 0)
	running := w.release("web-1", "web", func(r *v1alpha1.Release) {
		r.Status.Requests = []v1alpha1.ReleaseRequest{
			{Type: v1alpha1.RequestApprove, Stage: "copy", Attempt: 1, User: "early", Time: at}, {Type: v1alpha1.RequestApprove, Stage: "copy", Attempt: 2, User: "jane", Time: at},
			{Type: v1alpha1.RequestCancel, User: "joe", Time: at}, {Type: v1alpha1.RequestSkip, Stage: "copy", Attempt: 2, User: "joe", Time: at},
			{Type: v1alpha1.RequestApprove, Stage: "look", Attempt: 2, User: "mallory", Time: at}, {Type: v1alpha1.RequestApprove, Stage: "copy", Attempt: 2, Time: at},
		}
	})
	w.flying["copy"] = calls.InFlight{Release: running, Plugin: "toy", Attempt: 2, Entry: 1}
	for range 2 { // whoever asks again is told the same
		got := must[*pipedservice.ListStageCommandsResponse](t)(toy.ListStageCommands(t.Context(), &pipedservice.ListStageCommandsRequest{DeploymentId: "uid-web-1", StageId: "copy"}))
		var said []string
		for _, c := range got.Commands {
			said = append(said, fmt.Sprint(c.Id, " ", c.Type, " by ", c.Commander, " of ", c.DeploymentId, "/", c.StageId, " at ", c.CreatedAt))
		}
		if want := []string{"uid-web-1-1 APPROVE_STAGE by jane of uid-web-1/copy at 1000", "uid-web-1-3 SKIP_STAGE by joe of uid-web-1/copy at 1000"}; !slices.Equal(said, want) {
			t.Errorf("it is told %q, want %q", said, want)
		}
	}
}

func TestWhatAPluginSaysComesIntoTheLog(t *testing.T) {
	w := newWorld(t)
	toy := w.as("toy")
	w.flying["copy"] = calls.InFlight{Release: w.release("web-1", "web", nil), Plugin: "toy", Attempt: 2, Entry: 7}
	blocks := []*model.LogBlock{{Index: 5, Log: "one", CreatedAt: 1000}, {Index: 6, Log: "two", Severity: model.LogSeverity_ERROR, CreatedAt: 1001}}
	must[*pipedservice.ReportStageLogsResponse](t)(toy.ReportStageLogs(t.Context(), &pipedservice.ReportStageLogsRequest{DeploymentId: "uid-web-1", StageId: "copy", Blocks: blocks}))
	delete(w.flying, "copy")
	must[*pipedservice.ReportStageLogsFromLastCheckpointResponse](t)(toy.ReportStageLogsFromLastCheckpoint(t.Context(), &pipedservice.ReportStageLogsFromLastCheckpointRequest{DeploymentId: "uid-web-1", StageId: "copy", Blocks: blocks[1:], Completed: true}))
	if len(w.said) != 2 || w.said[0].Stage != "copy" || w.said[0].Attempt != 2 || w.said[0].Entry != 7 || len(w.said[0].Blocks) != 2 || !w.said[0].Blocks[1].Bad || w.said[1].Attempt != 1 || w.said[1].Entry != 0 {
		t.Errorf("said is %+v", w.said)
	}
	w.refuses = errors.New("etcd is away")
	_, err := toy.ReportStageLogs(t.Context(), &pipedservice.ReportStageLogsRequest{DeploymentId: "uid-web-1", StageId: "copy", Blocks: blocks})
	w.is(err, codes.Unavailable)
}

// A call may be made before the cache shows the plan.
func TestAStageThatRunsIsKnownBeforeTheCacheShowsIt(t *testing.T) {
	w := newWorld(t)
	planned := w.release("web-1", "web", nil)
	w.release("web-1", "web", func(r *v1alpha1.Release) { r.Status = v1alpha1.ReleaseStatus{} })
	w.app("web") // which does not use it any more
	toy := w.as("toy")
	if got := stageValue(t, toy, "copy", "planned"); got != "PermissionDenied" {
		t.Errorf("before, it finds %q", got)
	}
	w.flying["copy"] = calls.InFlight{Release: planned, Plugin: "toy", Attempt: 1, Entry: 1}
	if got := stageValue(t, toy, "copy", "planned"); got != "yes" {
		t.Errorf("it finds %q", got)
	}
	_, err := toy.GetDeploymentPluginMetadata(t.Context(), &pipedservice.GetDeploymentPluginMetadataRequest{DeploymentId: "uid-web-1", Key: "a"})
	w.is(err, codes.OK)
}

func TestOnlyThePluginsOwnUserIsAnswered(t *testing.T) {
	for name, test := range map[string]struct {
		uid  uint32
		is   bool
		want codes.Code
	}{
		"its user": {uint32(os.Getuid()), true, codes.OK}, "somebody else": {uint32(os.Getuid()) + 1, true, codes.Unavailable}, "it has no user of its own": {0, false, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.User = func(string) (uint32, bool) { return test.uid, test.is } })
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			w.is(putStage(ctx, w.as("toy"), "copy", "a", "b"), test.want)
		})
	}
}

// What a plugin sends lies in the server's memory before anybody looks at it, so it is bounded by how much of that there can be at a time.
func TestAPluginHasFewConnections(t *testing.T) {
	w := newWorld(t)
	address := must[string](t)(w.Address("toy"))
	var idle []net.Conn
	for range connections {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		idle = append(idle, conn)
		// The server has taken the connection once it says what it bears.
		if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	toy := w.as("toy")
	short, enough := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer enough()
	w.is(putStage(short, toy, "copy", "a", "b"), codes.DeadlineExceeded)
	w.is(putStage(t.Context(), w.as("other"), "look", "a", "b"), codes.OK) // nobody else is held up
	idle[0].Close()
	long, enough := context.WithTimeout(t.Context(), 20*time.Second)
	defer enough()
	w.is(putStage(long, toy, "copy", "a", "b"), codes.OK)
}

func TestRequestsOfTooManyPartsAreRefused(t *testing.T) {
	w := newWorld(t)
	toy := w.as("toy")
	blocks := make([]*model.LogBlock, 200_000)
	for i := range blocks {
		blocks[i] = &model.LogBlock{}
	}
	_, err := toy.ReportStageLogs(t.Context(), &pipedservice.ReportStageLogsRequest{DeploymentId: "uid-web-1", StageId: "copy", Blocks: blocks})
	if err == nil || !strings.Contains(err.Error(), "parts") || len(w.said) > 0 {
		t.Errorf("error %v, and said is %d times", err, len(w.said))
	}
}

func TestAddresses(t *testing.T) {
	w := newWorld(t)
	one := must[string](t)(w.Address("toy"))
	if again := must[string](t)(w.Address("toy")); again != one {
		t.Errorf("it is answered at %s, and at %s", one, again)
	}
	other := must[string](t)(w.Address("other"))
	host, _, err := net.SplitHostPort(one)
	if err != nil || host != "127.0.0.1" || other == one {
		t.Errorf("they are answered at %s and %s: %v", one, other, err)
	}
	toy := w.as("toy")
	w.is(putStage(t.Context(), toy, "copy", "a", "b"), codes.OK)
	w.Close("toy")
	w.Close("toy")
	w.is(putStage(t.Context(), toy, "copy", "a", "b"), codes.Unavailable)
	w.stop()
	<-w.over
	if _, err := w.Address("toy"); !errors.Is(err, errEnded) {
		t.Errorf("after the end, %v", err)
	}
}
