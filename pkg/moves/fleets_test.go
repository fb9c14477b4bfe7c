package moves

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

var deployments, _ = projection.ForResource(identity.Deployments)

// side is a cluster with its syncer, in a world in which everything takes its time: writes, watches, and controllers of the cluster.
type side struct {
	name   string
	fleets *Fleets
	// stored are the versions of the Deployment there, nil for none, and shown is the one that the watch has come to.
	stored []*appsv1.Deployment
	shown  int
	// What the controllers of the cluster know: what the ReplicaSet asks for, in its how manieth generation, which of these its controller has
	// read and which it has seen to, the pods, and how many of these it has reported to be ready.
	asks, generation, seen, ready, starting, reported int32
	reads                                             []int32
	// What the syncer does: it has read the object above, and knows what to write.
	read    *identity.Workload
	pending *appsv1.Deployment
	writes  bool
	told    int32
}

func (s *side) Cluster() string                                 { return s.name }
func (s *side) HasSynced() bool                                 { return true }
func (s *side) Emptying(identity.Workload) bool                 { return false }
func (s *side) Unrouted(identity.Workload, int32, string) int32 { return 0 }
func (s *side) now() *appsv1.Deployment                         { return s.stored[len(s.stored)-1] }
func (s *side) store(d *appsv1.Deployment)                      { s.stored = append(s.stored, d) }
func (s *side) said() (shown *appsv1.Deployment, hash string) {
	return s.stored[s.shown], hashOf(s.stored[s.shown])
}
func (s *side) Holding(_ identity.Workload, record *Record) Holding {
	shown, _ := s.said()
	if shown == nil {
		return Holding{}
	}
	return Holding{
		Projection: shown, Found: true, Behind: s.seen < s.generation,
		Told: min(*shown.Spec.Replicas, max(s.told, record.Decision[s.name].Replicas)),
	}
}

func hashOf(d *appsv1.Deployment) string {
	if d == nil {
		return Gone
	}
	return fmt.Sprint(*d.Spec.Replicas)
}

// look is one look of the syncer at the workload, in two parts: it reads, and it decides.
func (s *side) look(w identity.Workload) {
	key := w.Key()
	shown, saw := s.said()
	switch {
	case s.writes:
		return
	case s.read == nil:
		s.read = &w
		return
	}
	read := *s.read
	s.read = nil
	if hash, reserved := s.fleets.Reserved(key, s.name); reserved {
		if hash != saw {
			return
		}
		s.fleets.Release(key, s.name)
	}
	step := s.fleets.Next(read, s.name)
	var desired *appsv1.Deployment
	if !step.None {
		desired = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To(step.Share.Replicas)}}
	}
	if hashOf(desired) == hashOf(shown) {
		s.fleets.Forgo(key, s.name)
		return
	}
	s.fleets.Writing(key, s.name, hashOf(desired))
	s.pending, s.writes = desired, true
}

// write stores what the syncer has decided to write.
func (s *side) write() {
	if !s.writes {
		return
	}
	now, next := s.now(), s.pending
	s.pending, s.writes, s.told = nil, false, 0
	if next != nil {
		s.told = *next.Spec.Replicas
		if now != nil {
			next.Generation, next.Status = now.Generation+1, now.Status
		}
	}
	s.store(next)
}

// deploy has the controller of Deployments see what is asked for, and report what is known of the ReplicaSet.
func (s *side) deploy() {
	asked, now := int32(0), s.now()
	if now != nil {
		asked = *now.Spec.Replicas
	}
	if s.asks != asked {
		s.asks = asked
		s.generation++
	}
	if now == nil {
		return
	}
	next := now.DeepCopy()
	next.Status = appsv1.DeploymentStatus{
		ObservedGeneration: now.Generation, Replicas: s.reported, UpdatedReplicas: s.reported, ReadyReplicas: s.reported, AvailableReplicas: s.reported,
	}
	if next.Status.ObservedGeneration != now.Status.ObservedGeneration || next.Status.Replicas != now.Status.Replicas {
		s.store(next)
	}
}

// replicate has the controller of ReplicaSets read what is asked for and, the next time, make or end pods, those first that are not ready.
func (s *side) replicate() {
	if s.reads == nil {
		s.reads = []int32{s.asks, s.generation}
		return
	}
	asks, generation := s.reads[0], s.reads[1]
	s.reads = nil
	if more := asks - s.ready - s.starting; more > 0 {
		s.starting += more
	} else {
		idle := min(s.starting, -more)
		s.starting -= idle
		s.ready += more + idle
	}
	s.seen, s.reported = generation, s.ready
}

// start has a pod become ready.
func (s *side) start() {
	if s.starting > 0 {
		s.starting--
		s.ready++
	}
}

// world are clusters between which a Deployment moves.
type world struct {
	random *rand.Rand
	sides  []*side
	// slow are the kinds of what happens that take their time.
	slow   [6]bool
	above  identity.Workload
	fleets *Fleets
}

func newWorld(random *rand.Rand, replicas int32, move *v1alpha1.Move) *world {
	w := &world{random: random, fleets: New(Options{Moves: func(projection.Kind, projection.Object) *v1alpha1.Move { return move }})}
	w.fleets.Clusters = func() (out []Cluster) {
		for _, s := range w.sides {
			out = append(out, s)
		}
		return out
	}
	w.fleets.Cluster = func(name string) (Cluster, bool) {
		i := slices.IndexFunc(w.sides, func(s *side) bool { return s.name == name })
		return w.sides[i], true
	}
	for i := range w.slow {
		w.slow[i] = random.IntN(3) == 0
	}
	for _, name := range []string{"east", "north", "west"} {
		w.sides = append(w.sides, &side{name: name, fleets: w.fleets, stored: []*appsv1.Deployment{nil}})
	}
	w.decide("east", replicas)
	first := w.sides[0]
	first.told, first.ready, first.asks, first.reported = replicas, replicas, replicas, replicas
	first.stored[0] = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To(replicas)}}
	first.deploy()
	first.shown = len(first.stored) - 1
	return w
}

func (w *world) decide(cluster string, replicas int32) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Generation: 1}}
	d.Spec.Replicas = ptr.To(replicas)
	var status []string
	for _, s := range w.sides {
		status = append(status, fmt.Sprintf(`%q:{}`, s.name))
	}
	d.Annotations = map[string]string{
		v1alpha1.AnnotationPlacement: fmt.Sprintf(`{%q:{"replicas":%d}}`, cluster, replicas),
		v1alpha1.AnnotationStatus:    "{" + strings.Join(status, ",") + "}",
	}
	w.above = identity.Workload{Kind: deployments, Object: d}
}

// happen has one thing happen.
func (w *world) happen() {
	s, what := w.sides[w.random.IntN(len(w.sides))], w.random.IntN(len(w.slow))
	if w.slow[what] && w.random.IntN(8) > 0 {
		return
	}
	switch what {
	case 0:
		s.look(w.above)
	case 1:
		s.write()
	case 2:
		s.shown = min(s.shown+1, len(s.stored)-1)
	case 3:
		s.deploy()
	case 4:
		s.replicate()
	case 5:
		s.start()
	}
}

func (w *world) ready() (n int32) {
	for _, s := range w.sides {
		n += s.ready
	}
	return n
}

func (w *world) told() (n int32) {
	for _, s := range w.sides {
		if d := s.now(); d != nil {
			n += *d.Spec.Replicas
		}
	}
	return n
}

func (w *world) arrived(cluster string, replicas int32) bool {
	for _, s := range w.sides {
		switch now := s.now(); {
		case s.name == cluster && (now == nil || *now.Spec.Replicas != replicas || s.ready != replicas):
			return false
		case s.name != cluster && (now != nil || s.ready > 0):
			return false
		}
	}
	return true
}

func (w *world) String() string {
	var out []string
	for _, s := range w.sides {
		shown, _ := s.said()
		out = append(out, fmt.Sprintf("%s: %s asked, %s shown, %d ready, %d starting", s.name, hashOf(s.now()), hashOf(shown), s.ready, s.starting))
	}
	return strings.Join(out, "; ")
}

// A move is turned round again and again while writes, watches and controllers of the clusters take their time, and while syncers still decide by what
// they have read before. Never are fewer replicas ready than may be, never more asked for, and the move ends where it was decided last.
func TestTurningAMoveRoundKeepsItsBounds(t *testing.T) {
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 1))
		replicas, surge, missing := 1+random.Int32N(6), random.Int32N(3), random.Int32N(2)
		if surge == 0 {
			missing = max(missing, 1)
		}
		w := newWorld(random, replicas, &v1alpha1.Move{
			MaxSurge: ptr.To(intstr.FromInt32(surge)), MaxUnavailable: ptr.To(intstr.FromInt32(missing)),
		})
		to, turns, pause := "east", 1+random.IntN(20), 5+random.IntN(60)
		for happened := 0; turns > 0 || !w.arrived(to, replicas); happened++ {
			if turns > 0 && random.IntN(pause) == 0 {
				turns--
				to = w.sides[random.IntN(len(w.sides))].name
				w.decide(to, replicas)
			}
			before := w.String()
			w.happen()
			if least := replicas - missing; w.ready() < least {
				t.Fatalf("seed %d: %d of %d replicas are ready, want %d at least, on the way to %s\n from %s\n   to %s", seed, w.ready(), replicas, least, to, before, w)
			}
			if most := replicas + surge; w.told() > most {
				t.Fatalf("seed %d: clusters are told to run %d replicas, want %d at most, on the way to %s\n from %s\n   to %s", seed, w.told(), most, to, before, w)
			}
			if happened > 20000 {
				t.Fatalf("seed %d: it does not arrive in %s: %s", seed, to, w)
			}
		}
	}
}
