package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/hack/stock/process"
)

const (
	// largeTogether are the objects of one Deployment: the Deployment, its Service, its Secret, and the ConfigMaps that its pods would use.
	largeTogether = 50
	// largeLooking is how often it is looked how many of the objects there are.
	largeLooking = 200 * time.Millisecond
)

// measureLarge releases one application of many objects, whose manifests are in git, to two simulated clusters, and then a change of all of them.
func measureLarge(ctx context.Context, sizes deliverySizes, binary, dir string, report *deliveryReport) error {
	repository := filepath.Join(dir, "large-source")
	if err := errors.Join(os.RemoveAll(repository), os.MkdirAll(repository, 0o700)); err != nil {
		return fmt.Errorf("make a folder for the repository: %w", err)
	}
	if err := git(ctx, repository, "init", "--quiet", "--initial-branch=main", "."); err != nil {
		return err
	}
	if err := commitLarge(ctx, repository, sizes.Objects, 1); err != nil {
		return err
	}
	o := fleetOptions{binary: binary, dir: filepath.Join(dir, "large"), clusters: 2, cores: 1000, args: []string{"--outbound-files=" + dir}}
	return onFleet(ctx, o, func(ctx context.Context, f *fleet, _ *workshop, seen *progress) error {
		return releaseLarge(ctx, sizes, repository, f, seen, report)
	})
}

func releaseLarge(ctx context.Context, sizes deliverySizes, repository string, f *fleet, seen *progress, report *deliveryReport) error {
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: deliveryNamespace, Name: "app"}}
	app.Spec.Source.Git = &v1alpha1.GitSource{URL: "file://" + repository, Interval: &metav1.Duration{Duration: 10 * time.Second}}
	for _, end := range f.ends {
		app.Spec.Targets = append(app.Spec.Targets, v1alpha1.Target{Name: end.Name(), Cluster: end.Name()})
	}
	usage := func() process.Usage {
		of, err := process.UsageOf(f.server.Process().PID())
		if err != nil {
			return process.Usage{}
		}
		return of
	}
	began, before := time.Now(), usage()
	figure := func(what string) {
		report.add("s", time.Since(began).Seconds(), "one application of %d objects, 2 simulated clusters: %s", sizes.Objects, what)
		fmt.Fprintf(os.Stderr, "bench: %s after %s\n", what, time.Since(began).Round(100*time.Millisecond))
	}
	spent := func(what string) {
		report.add("s", (usage().CPU - before.CPU).Seconds(), "CPU of the logical cluster for %s", what)
		report.add("MiB", float64(usage().RSS)/(1<<20), "resident memory of the logical cluster after %s", what)
	}
	fmt.Fprintf(os.Stderr, "bench: release an application of %d objects\n", sizes.Objects)
	if _, err := f.manifold.DeliveryV1alpha1().Applications(deliveryNamespace).Create(ctx, app, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create Application %q: %w", app.Name, err)
	}
	for _, place := range []struct {
		name string
		has  func() (int, error)
	}{
		{"in the logical cluster", func() (int, error) {
			list, err := f.client.CoreV1().ConfigMaps(deliveryNamespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelApplication + "=app", ResourceVersion: "0"})
			if err != nil {
				return 0, err
			}
			return len(list.Items), nil
		}},
		{"in both clusters", func() (int, error) {
			return min(f.ends[0].Count("", "configmaps"), f.ends[1].Count("", "configmaps")), nil
		}},
	} {
		err := wait.PollUntilContextTimeout(ctx, largeLooking, deliveryTimeout, true, func(context.Context) (bool, error) {
			has, err := place.has()
			return has >= sizes.Objects/largeTogether*(largeTogether-3), err
		})
		if err != nil {
			return fmt.Errorf("wait until the ConfigMaps are %s: %w", place.name, err)
		}
		figure(place.name)
	}
	if err := seen.released(ctx, []string{app.Name}, 1); err != nil {
		return err
	}
	figure("released")
	spent("its first release")
	if err := commitLarge(ctx, repository, sizes.Objects, 2); err != nil {
		return err
	}
	began, before = time.Now(), usage()
	fmt.Fprintln(os.Stderr, "bench: release a change of all of them")
	refresh := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationRefresh, began.Format(time.RFC3339Nano))
	if _, err := f.manifold.DeliveryV1alpha1().Applications(deliveryNamespace).Patch(ctx, app.Name, "application/merge-patch+json", []byte(refresh), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("have the repository of Application %q read: %w", app.Name, err)
	}
	if err := seen.released(ctx, []string{app.Name}, 2); err != nil {
		return err
	}
	figure("a change of all of them released")
	spent("the change")
	return nil
}

// commitLarge commits manifests of so many objects, all of which differ from version to version.
func commitLarge(ctx context.Context, repository string, objects, version int) error {
	for part := range objects / largeTogether {
		var out, from strings.Builder
		for i := range largeTogether - 3 {
			fmt.Fprintf(&out, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: part-%d-%d}, data: {part: '%d', version: '%d'}}\n", part, i, part, version)
			fmt.Fprintf(&from, "{configMapRef: {name: part-%d-%d}}, ", part, i)
		}
		fmt.Fprintf(&out, `---
{apiVersion: v1, kind: Secret, metadata: {name: part-%[1]d}, stringData: {password: of-%[2]d}}
---
{apiVersion: v1, kind: Service, metadata: {name: part-%[1]d, annotations: {version: '%[2]d'}}, spec: {selector: {app: part-%[1]d}, ports: [{port: 80}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: part-%[1]d}
spec:
  replicas: 0
  selector: {matchLabels: {app: part-%[1]d}}
  template:
    metadata: {labels: {app: part-%[1]d}}
    spec: {containers: [{name: app, image: 'app:%[2]d', envFrom: [%[3]s{secretRef: {name: part-%[1]d}}]}]}
`, part, version, from.String())
		if err := os.WriteFile(filepath.Join(repository, fmt.Sprintf("part-%d.yaml", part)), []byte(out.String()), 0o600); err != nil {
			return fmt.Errorf("write manifests: %w", err)
		}
	}
	if err := git(ctx, repository, "add", "--all"); err != nil {
		return err
	}
	return git(ctx, repository, "commit", "--quiet", "--message", fmt.Sprint("Version ", version))
}

func git(ctx context.Context, repository string, arguments ...string) error {
	command := exec.CommandContext(ctx, "git", append([]string{"-c", "user.name=bench", "-c", "user.email=bench@example.com"}, arguments...)...)
	command.Dir = repository
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return nil
}
