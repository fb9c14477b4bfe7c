package framework

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Scenario is what one test works with: a namespace of its own in an Environment, and every API in that namespace.
type Scenario struct {
	*testing.T
	Environment *Environment
	// Namespace has a unique name and is deleted with everything in it when the test ends.
	Namespace string
	// Logical is the logical cluster. East and West are nil in environments without clusters of these names; Side has the others.
	Logical, East, West *Side
}

// NewScenario makes a namespace for the test. When the test fails, it shows what is in it.
func NewScenario(t *testing.T, e *Environment) *Scenario {
	t.Helper()
	s := &Scenario{T: t, Environment: e}
	namespace, err := e.Logical.Kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("make a namespace for the test: %v", err)
	}
	s.Namespace = namespace.Name
	s.Logical = s.side(e.Logical)
	if a, ok := e.Physical["east"]; ok {
		s.East = s.side(a)
	}
	if a, ok := e.Physical["west"]; ok {
		s.West = s.side(a)
	}
	t.Cleanup(s.clean)
	return s
}

// Side returns the API of the cluster with the given name, in the scenario's namespace.
func (s *Scenario) Side(cluster string) *Side {
	s.Helper()
	a, ok := s.Environment.Physical[cluster]
	if !ok {
		s.Fatalf("there is no cluster %q", cluster)
	}
	return s.side(a)
}

func (s *Scenario) side(a *API) *Side {
	return &Side{API: a, Namespace: s.Namespace, t: s.T, ctx: s.Context(), deadline: Deadline}
}

// Subtest returns the scenario for a subtest, which shares the namespace.
func (s *Scenario) Subtest(t *testing.T) *Scenario {
	out := *s
	out.T = t
	for _, side := range []**Side{&out.Logical, &out.East, &out.West} {
		if *side != nil {
			*side = out.side((*side).API)
		}
	}
	return &out
}

// clean shows what is there when the test has failed, and deletes the namespace. It does not wait: the namespace is nobody else's.
func (s *Scenario) clean() {
	// The test's own context has ended.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if s.Failed() {
		s.Log(s.dump(ctx))
	}
	err := s.Environment.Logical.Kube.CoreV1().Namespaces().Delete(ctx, s.Namespace, metav1.DeleteOptions{})
	if err != nil {
		s.Logf("delete namespace %s: %v", s.Namespace, err)
	}
}

// dump returns the state of the namespace everywhere, and the end of manifold's log.
func (s *Scenario) dump(ctx context.Context) string {
	out := "namespace " + s.Namespace + "\n"
	apis := []*API{s.Environment.Logical}
	for _, a := range s.Environment.Physical {
		apis = append(apis, a)
	}
	for _, a := range apis {
		side := &Side{API: a, Namespace: s.Namespace, ctx: ctx}
		out += fmt.Sprintf("== %s\n%s\n%s\n%s\n", a.Name,
			side.Try("get", "deployments,statefulsets,replicasets,jobs,pods,services", "-o", "wide").Stdout,
			side.Try("get", "events", "--sort-by=.lastTimestamp").Stdout,
			side.Try("get", "deployments,statefulsets", "-o", "yaml").Stdout)
	}
	return out + "== manifold\n" + s.Environment.Manifold.LogTail(40)
}
