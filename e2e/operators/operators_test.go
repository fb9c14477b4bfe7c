package operators

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// operator is a released operator, and what it is to do.
type operator struct {
	// program is one of tools.BuildOperators, and crds the pattern of the files in its module that define its custom resources.
	program, crds string
	// start returns the arguments and the environment of the program, which is to look after the scenario's namespace alone.
	start func(s *framework.Scenario) (args, env []string)
	// given is a manifest of what it needs from its admin or users, which stays when its custom resource goes.
	given string
	// resource is a manifest of the custom resource, and name its kind and name. NAMESPACE in both manifests is the namespace, which a storage
	// class with some volumes in each cluster is named after too, and FREEPORT a port.
	resource, name string
	// well is what "kubectl wait --for" waits for, or nothing if the custom resource does not tell how it is.
	well string
	// selects is a label selector of the pods that are counted.
	selects string
	// pods is how many of them there are at first.
	pods int
	// play, if there is one, does what the programs in the pods would do, once all of these are ready.
	play func(s *framework.Scenario)
	// steps are the changes of its size, one after another.
	steps []step
	// makes are objects that it makes in its namespace, as "statefulsets.apps/main". Those in below are in the clusters that need them.
	makes, below []string
	// keeps are objects that may be left behind, as they are on any cluster if nothing else is said. A "*" stands for what a controller makes up
	// of a name.
	keeps []string
	// returns is whether the operator may make its custom resource anew just after it was deleted, on any cluster. It is deleted again then.
	returns bool
	// divided is whether its pods are of a workload that is divided over the clusters, so that each has some.
	divided bool
}

// step is a change of the custom resource after which there are that many pods.
type step struct {
	patch string
	pods  int
}

func TestOperators(t *testing.T) {
	for _, o := range []operator{rabbitMQ, kubeRay, jobSet, fluent, mpi, training, redis, postgres, leaderWorkerSet} {
		t.Run(o.program, func(t *testing.T) {
			s := framework.NewScenario(t, shared.Get(t))
			s.InstallCRDs(o.program, o.crds)
			o.collected(s)
			for _, places := range [][]string{clusters[:1], clusters} {
				t.Run("in "+strings.Join(places, " and "), func(t *testing.T) { o.run(framework.NewScenario(t, shared.Get(t)), places) })
			}
		})
	}
}

// even has workloads divided evenly, StatefulSets as well, which otherwise stay whole.
const even = `
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: even}
spec: {division: {type: Divide, by: Even}}
---
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: even-sets}
spec: {priority: 1, workloads: {kinds: [StatefulSet]}, division: {type: Divide, by: Even}}
`

// disks is how many volumes each cluster has for an operator.
const disks = 6

// patience is how long an operator may take for what needs several rounds of it.
const patience = 2 * time.Minute

// run has the operator go from nothing to nothing in a namespace that is pinned to the places.
func (o operator) run(s *framework.Scenario, places []string) {
	s.Helper()
	fill := strings.NewReplacer("NAMESPACE", s.Namespace, "FREEPORT", strconv.Itoa(s.FreePort()))
	program := o.begin(s, places, fill)
	l := s.Logical.Within(patience)
	before := sets.KeySet(inventory(s, l))

	l.Apply(fill.Replace(o.resource))
	o.becomes(s, places, o.pods)
	o.hasMade(s, places, before)

	for _, step := range o.steps {
		l.Kubectl("patch", o.name, "--type=json", "-p", step.patch)
		o.becomes(s, places, step.pods)
	}

	o.deletes(s, before)
	if log := program.LogTail(1000); strings.Contains(log, "panic") {
		s.Errorf("the operator has panicked:\n%s", log)
	}
}

// becomes waits until the custom resource has so many pods and, if there are any, is well.
func (o operator) becomes(s *framework.Scenario, places []string, pods int) {
	s.Helper()
	o.runs(s, places, pods)
	if o.play != nil {
		o.play(s)
	}
	if pods > 0 && o.well != "" {
		s.Logical.Kubectl("wait", o.name, "--for="+o.well, fmt.Sprintf("--timeout=%s", patience))
	}
}

// deletes deletes the custom resource and waits until nothing is left of it anywhere.
func (o operator) deletes(s *framework.Scenario, before sets.Set[string]) {
	s.Helper()
	l := s.Logical.Within(patience)
	again := func() {}
	if o.returns {
		again = func() { l.Kubectl("delete", o.name, "--ignore-not-found", "--wait=false") }
	}
	l.Kubectl("delete", o.name, fmt.Sprintf("--timeout=%s", patience))
	kept := sets.New(o.keeps...)
	gone(s, l, before.Union(kept), again)
	for _, cluster := range clusters {
		gone(s, s.Side(cluster).Within(patience), brought.Union(kept), again)
	}
}

// begin starts the operator in a namespace that is pinned to the places, with all that it needs.
func (o operator) begin(s *framework.Scenario, places []string, fill *strings.Replacer) *framework.Operator {
	s.Helper()
	s.Logical.Kubectl("annotate", "namespace", s.Namespace, v1alpha1.AnnotationClusters+"="+strings.Join(places, ","))
	s.Logical.Apply(even)
	for _, cluster := range clusters {
		s.Disks(s.Side(cluster), disks)
	}
	if o.given != "" {
		s.Logical.Apply(fill.Replace(o.given))
	}
	args, env := o.start(s)
	program := s.Logical.WithEnv(env...).StartOperator(s.Environment.Dir, o.program, args...)
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("%s:\n%s", o.program, program.LogTail(20))
		}
	})
	return program
}

// hasMade checks that what the operator makes is there, in the logical cluster and in the clusters.
func (o operator) hasMade(s *framework.Scenario, places []string, before sets.Set[string]) {
	s.Helper()
	above, below := sets.KeySet(inventory(s, s.Logical)).Difference(before), sets.New[string]()
	for _, place := range places {
		below = below.Union(sets.KeySet(inventory(s, s.Side(place))))
	}
	if missing := sets.New(o.makes...).Difference(above); len(missing) > 0 {
		s.Errorf("it has not made %v, but %v", sets.List(missing), sets.List(above))
	}
	if missing := sets.New(o.below...).Difference(below); len(missing) > 0 {
		s.Errorf("no cluster has %v, but they have %v", sets.List(missing), sets.List(below))
	}
}

// runs waits until there are that many ready pods above, and the same ones in the clusters where they may be.
func (o operator) runs(s *framework.Scenario, places []string, count int) {
	s.Helper()
	framework.AwaitList(s.Logical.Within(patience), o.selects, fmt.Sprintf("%d run", count), expect.ReadyPods(count))
	s.Logical.Within(patience).Poll(fmt.Sprintf("the clusters run %d", count), func() error {
		total, parts := 0, map[string]int{}
		for _, place := range clusters {
			parts[place] = podsIn(s, s.Side(place), o.selects)
			total += parts[place]
			if parts[place] > 0 && !slices.Contains(places, place) {
				return fmt.Errorf("some are where none may be: %v", parts)
			}
			if o.divided && slices.Contains(places, place) && parts[place] == 0 && count >= len(places) {
				return fmt.Errorf("they are not divided: %v", parts)
			}
		}
		if total != count {
			return fmt.Errorf("they run %v", parts)
		}
		return nil
	})
}
