package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/logs"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/calls"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/services"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/source"
)

// one is a directory of one plugin.
type one plugins.Plugin

func (o one) Get(string) (plugins.Plugin, string) { return plugins.Plugin(o), "" }
func (one) Offers(string) []string                { return nil }
func (one) Changed(func(string))                  {}

// folder has the files of a revision in a folder of its name.
type folder string

func (f folder) Prepare(_ context.Context, _ *v1alpha1.Application, revision *v1alpha1.ApplicationRevision, _ string) (*source.DeploymentSource, func() error, error) {
	return &source.DeploymentSource{ApplicationDirectory: filepath.Join(string(f), revision.Name), CommitHash: revision.Name}, func() error { return nil }, nil
}

// flight knows the calls in flight, which are made after the services that ask for them.
type flight struct{ *calls.Calls }

func (f *flight) InFlight(release types.UID, stage string) (calls.InFlight, bool) {
	return f.Calls.InFlight(release, stage)
}

// The plugin of the page runs a stage of a release, and says so in its log.
func TestTheExampleRunsAStageOfARelease(t *testing.T) {
	release := &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "r"}, Spec: v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v1"},
		Status: v1alpha1.ReleaseStatus{
			Phase: v1alpha1.ReleaseRunning, Plan: &v1alpha1.ReleasePlan{
				Plugins: []v1alpha1.PlannedPlugin{{Name: "files", DeployTargets: []string{"a"}}}, Stages: []v1alpha1.Stage{{ID: "copy", Name: syncStage, Plugin: "files"}},
			},
		},
	}
	client := fake.NewClientset(release)
	factory, over := externalversions.NewSharedInformerFactory(client, 0), make(chan error, 3)
	told, err := logs.New(logs.Options{Informers: factory, Client: client, Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	in := &flight{}
	host, err := services.New(services.Options{Informers: factory, Client: client, Calls: in, Logs: told})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	service, err := host.Address("files")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "web-v1"), 0o700), os.WriteFile(filepath.Join(root, "web-v1", "index.html"), []byte("one"), 0o600)); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err = errors.Join(err, free.Close()); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	in.Calls = calls.New(calls.Options{
		Plugins: one{Name: "files", Stages: []string{syncStage}, Conn: conn, Incarnation: 1, Targets: []plugins.Target{{Name: "a"}}}, Sources: folder(root),
	})
	news := make(chan struct{}, 10)
	in.Changed(func(cache.ObjectName) { news <- struct{}{} })
	ctx, stop := context.WithCancel(t.Context())
	text := fmt.Sprintf(`{"port":%s,"deployTargets":[{"name":"a","config":{"path":%q}}]}`, port, filepath.Join(root, "a"))
	go func() { over <- run(ctx, []string{"start", "--piped-plugin-service", service, "--config", text}) }()
	go func() { over <- in.Run(ctx) }()
	go func() { over <- host.Run(ctx) }()
	asked := calls.Run{
		Application: &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "a"}}, Release: release,
		Revision: &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-v1"}}, Stage: "copy", Name: "copy-0", Attempt: 1,
	}
	outcome, late := delivery.Outcome{}, time.After(20*time.Second)
	for {
		if outcome, err = in.Outcome(asked); err != nil {
			t.Fatal(err)
		}
		if outcome.Phase.Ended() {
			break
		}
		select {
		case <-news:
		case <-late:
			t.Fatalf("it does not end: %+v", outcome)
		}
	}
	stop()
	for range cap(over) {
		<-over
	}
	if got, err := os.ReadFile(filepath.Join(root, "a", "live", "index.html")); outcome.Phase != delivery.Succeeded || string(got) != "one" {
		t.Errorf("%+v, and there is %q: %v", outcome, got, err)
	}
	parts, err := client.DeliveryV1alpha1().ReleaseLogParts("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(parts.Items) != 1 || len(parts.Items[0].Spec.Lines) != 1 || !strings.HasSuffix(parts.Items[0].Spec.Lines[0].Message, `live of a has commit "web-v1"`) {
		t.Errorf("the log is %+v: %v", parts, err)
	}
}
