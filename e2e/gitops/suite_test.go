// Package gitops tests pipelines between programs as they are released: Gitea, where people merge what a pipeline proposes, and the controllers of Flux, which
// bring to the logical cluster, or to a cluster behind it, what a repository says. They take long to build, so only "make gitops" does all this.
package gitops

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock/tools"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// shared is a logical cluster with clusters "dev" and "prod", which let pipelines show what runs there by itself. The forge is on this machine.
var shared = framework.NewShared(framework.Options{
	Clusters: []string{"dev", "prod"}, JoinArgs: []string{"--allow-pipelines"}, ManifoldArgs: []string{"--outbound-networks=127.0.0.0/8"},
})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// pipelines is the resource of the newer group, as kubectl takes it.
const pipelines = "pipelines.pipelines.weave.works"

// patience is for what goes through several programs, each of which looks again after seconds.
const patience = 3 * framework.Deadline

var defined sync.Once

// scenario returns a namespace of the shared logical cluster, in which pipelines and the kinds of Flux are served, there and in the clusters.
func scenario(t *testing.T) *framework.Scenario {
	t.Helper()
	s := framework.NewScenario(t, shared.Get(t))
	defined.Do(func() {
		s.Logical.Kubectl("apply", "-k", "../../config/crds/weave")
		all := fluxDefinitions(s)
		for _, side := range []*framework.Side{s.Logical, s.Side("dev"), s.Side("prod")} {
			side.KubectlInput(all, "apply", "--server-side", "-f", "-")
			side.Established(all)
		}
	})
	s.Logical.Poll("pipelines are served", func() error { return framework.Failure(s.Logical.Try("get", pipelines)) })
	return s
}

// root returns the root of the repository.
func root(s *framework.Scenario) string {
	s.Helper()
	out, err := tools.Root()
	if err != nil {
		s.Fatal(err)
	}
	return out
}

// fluxDefinitions are the kinds of Flux as its controllers define them.
func fluxDefinitions(s *framework.Scenario) string {
	s.Helper()
	var out []string
	for _, controller := range []string{tools.FluxSource, tools.FluxKustomize, tools.FluxHelm} {
		dir, err := tools.SourceOf(s.Context(), root(s), controller)
		if err != nil {
			s.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "config", "crd", "bases", "*.yaml"))
		if err != nil || len(files) == 0 {
			s.Fatalf("find the definitions of %s: %v, %d files", controller, err, len(files))
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				s.Fatal(err)
			}
			out = append(out, string(content))
		}
	}
	return strings.Join(out, "\n---\n")
}

// startFlux runs controllers of Flux in front of a logical cluster or a cluster, as its admin, until the test ends. They see to the scenario's namespaces as to all
// others: tests have them one after another.
func startFlux(s *framework.Scenario, side *framework.Side, controllers ...string) {
	s.Helper()
	side = side.WithEnv("RUNTIME_NAMESPACE="+s.Namespace, "HOME="+s.TempDir(), "TMPDIR="+s.TempDir())
	for _, controller := range controllers {
		args := []string{"--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0", "--watch-all-namespaces", "--min-retry-delay=500ms", "--max-retry-delay=2s"}
		if controller == tools.FluxSource {
			address := fmt.Sprintf("127.0.0.1:%d", s.FreePort())
			args = append(args, "--storage-path="+s.TempDir(), "--storage-addr="+address, "--storage-adv-addr="+address)
		} else {
			args = append(args, "--requeue-dependency=1s")
		}
		operator := side.StartOperator(s.TempDir(), controller, args...)
		s.Cleanup(func() {
			if s.Failed() {
				s.Logf("%s at %s:\n%s", controller, side.Name, operator.LogTail(40))
			}
		})
	}
}

// statusOf reads the status of a pipeline of the scenario's namespace.
func statusOf(s *framework.Scenario, name string) (weave.Status, error) {
	s.Helper()
	out := weave.Pipeline{}
	result := s.Logical.Try("get", pipelines, name, "-o", "json")
	if err := framework.Failure(result); err != nil {
		return out.Status, err
	}
	return out.Status, json.Unmarshal([]byte(result.Stdout), &out)
}

// runs waits until an environment is shown to run a workload in a version, and to be ready with it.
func runs(s *framework.Scenario, pipeline, environment, workload, version string) {
	s.Helper()
	s.Logical.Within(patience).Poll(fmt.Sprintf("%s of pipeline %s runs %s %s", environment, pipeline, workload, version), func() error {
		status, err := statusOf(s, pipeline)
		if err != nil {
			return err
		}
		if of := status.Environments[environment]; of != nil && len(of.Targets) == 1 && of.Targets[0].Ready {
			for _, w := range of.Targets[0].Workloads {
				if w.Kind+"/"+w.Name == workload && w.Version == version {
					return nil
				}
			}
		}
		return fmt.Errorf("its status is %s", shown(status))
	})
}

// promoted waits until the promotion to an environment stands as it should, and returns it.
func promoted(s *framework.Scenario, pipeline, environment, revision string, phase weave.PromotionPhase) (out weave.PromotionStatus) {
	s.Helper()
	s.Logical.Within(patience).Poll(fmt.Sprintf("the promotion of %s to %s is %s", revision, environment, phase), func() error {
		status, err := statusOf(s, pipeline)
		if err != nil {
			return err
		}
		of := status.Environments[environment]
		if of == nil || of.Promotion == nil || of.Promotion.Revision != revision || of.Promotion.Phase != phase {
			return fmt.Errorf("its status is %s", shown(status))
		}
		out = *of.Promotion
		return nil
	})
	return out
}

func shown(status weave.Status) string {
	out, err := json.Marshal(status)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
