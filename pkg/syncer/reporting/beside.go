package reporting

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/tools/cache"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// A revision of an application has more than workloads: ConfigMaps, Secrets, Services and the like, which go where a workload needs them, and have no status
// of their own to tell in which clusters they are. So a workload tells it for all of them: the first of the revision that is placed in a cluster says what
// the cluster lacks of it beside workloads. That costs no writes but for the status of that one workload.

// beside knows what a cluster lacks of the revisions that it is to hold.
type beside struct {
	*Options

	mu sync.Mutex
	// of has what is known by application. What is whole, and was told, is forgotten: the status of the workload that tells it has it from then on.
	of map[cache.ObjectName]*revision
	// awaited are the objects that a revision lacks, or is told by while it cannot be read.
	awaited map[identity.Key]*revision
}

// revision is one that a cluster is to hold.
type revision struct {
	at      identity.Revision
	edition string
	// workloads are those of the revision whose status is told by cluster, in its order: the first that is placed in the cluster tells.
	workloads []identity.Key
	// lacking are the objects of it of which it is not known that the cluster has them.
	lacking []part
	// spoke are the workloads that have told that something is lacking. A workload that comes before them tells it once it is placed, and they no more.
	spoke map[identity.Key]bool
	// says is what is lacking, and why, in words that stay as long as there is no other reason; "" if nothing is.
	says, why string
	// stale says that something of the application was written since, or before anybody asked.
	stale bool
	// asks is the workload that tells that the revision cannot be read, if it cannot.
	asks identity.Key
}

// part is an object of a revision.
type part struct {
	identity.Key
	kind projection.Kind
	hash string
}

func newBeside(o *Options) *beside {
	return &beside{Options: o, of: map[cache.ObjectName]*revision{}, awaited: map[identity.Key]*revision{}}
}

// lacks says what the cluster lacks of a revision that it has of a workload, for the workload that is to tell it. Told is whether the status of the
// workload says already that the cluster has all of it.
func (b *beside) lacks(key identity.Key, at identity.Revision, told bool) string {
	application, _, named := delivery.ParseRevisionName(at.Name)
	if !named || at.OfView() {
		return ""
	}
	name := cache.NewObjectName(key.Namespace, application)
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.of[name]
	if told && (known == nil || known.at != at && !(known.stale && b.tells(known, key))) {
		return ""
	}
	if known == nil || known.at != at || known.edition != b.Above.Versions.Edition(key.Namespace, at.Name) || known.stale && len(known.lacking) == 0 {
		known = b.begin(name, key, at)
	}
	delete(known.spoke, key)
	if !b.tells(known, key) {
		return "" // and it does not look: what has come since would be no news to who tells
	}
	b.look(known)
	if told && known.says == "" {
		delete(b.of, name)
	}
	if known.says != "" {
		known.spoke[key] = true
	}
	return known.says
}

// tells reports whether it is for a workload to tell what the cluster lacks of a revision.
func (b *beside) tells(of *revision, key identity.Key) bool {
	for _, workload := range of.workloads {
		if workload == key {
			return true
		}
		if above := b.Above.Get(workload); above != nil {
			if _, placed := identity.DecisionOf(above)[b.Name]; placed {
				return false
			}
		}
	}
	return true // nothing is known of it
}

// begin notes what a cluster is to have at a revision.
func (b *beside) begin(name cache.ObjectName, asks identity.Key, at identity.Revision) *revision {
	out := &revision{at: at, edition: b.Above.Versions.Edition(name.Namespace, at.Name), spoke: map[identity.Key]bool{}}
	if before := b.of[name]; before != nil && before.at == at {
		maps.Copy(out.spoke, before.spoke)
	}
	b.drop(b.of[name])
	b.of[name] = out
	manifests, err := b.Above.Versions.Contents(name.Namespace, at)
	if err != nil {
		out.says, out.stale, out.asks = summary.Text(fmt.Sprintf("what else %s has cannot be read: %s", at.Name, err)), true, asks
		b.awaited[asks] = out // the revision has it looked at again
		return out
	}
	var others []part
	for _, manifest := range manifests {
		p, follows := partOf(name.Namespace, manifest)
		switch {
		case !follows:
		case !p.kind.Workload:
			others = append(others, p)
		default:
			out.lacking = append(out.lacking, p)
			if Summarised(p.kind) {
				out.workloads = append(out.workloads, p.Key)
			}
		}
	}
	out.lacking = append(out.lacking, others...) // which is where they are needed as workloads say by then
	for _, p := range out.lacking {
		b.awaited[p.Key] = out
	}
	return out
}

func partOf(namespace string, manifest contents.Content) (p part, follows bool) {
	kind, known := projection.ForGVK(manifest.Object.GroupVersionKind())
	if !known || !kind.Namespaced {
		return part{}, false
	}
	return part{identity.Key{Resource: kind.Resource, Namespace: namespace, Name: manifest.Object.GetName()}, kind, manifest.Hash}, true
}

// drop forgets a revision that nobody is to hear of any more.
func (b *beside) drop(of *revision) {
	if of == nil {
		return
	}
	for key, awaiting := range b.awaited {
		if awaiting == of {
			delete(b.awaited, key)
		}
	}
}

// look drops what the cluster has by now of what was lacking. Each object is looked at until it is there, one after the other.
func (b *beside) look(of *revision) {
	if of.stale && len(of.lacking) == 0 {
		return // it cannot be read, or is to be looked at from the beginning
	}
	for len(of.lacking) > 0 && b.there(of, of.lacking[0]) {
		delete(b.awaited, of.lacking[0].Key)
		of.lacking = of.lacking[1:]
	}
	if len(of.lacking) == 0 {
		of.lacking, of.says, of.why = nil, "", ""
		return
	}
	first := of.lacking[0]
	st := b.States.Of(first.Key)
	why := st.Problem
	if why == "" {
		why = st.Reason
	}
	if of.says != "" && of.why == why {
		return
	}
	of.why, of.says = why, fmt.Sprintf("not all that %s has beside it is there yet", of.at.Name)
	if why != "" {
		of.says = summary.Text(fmt.Sprintf("%s %s of %s is not there: %s", first.kind.GVK.Kind, first.Name, of.at.Name, why))
	}
}

// there reports whether the cluster has an object as the revision says, or is to have nothing of it. A workload tells by itself what the cluster has of it:
// here it counts that it asks for what it needs at this revision.
func (b *beside) there(of *revision, p part) bool {
	above := b.Above.Get(p.Key)
	if above == nil {
		return false
	}
	st := b.States.Of(p.Key)
	holds := !p.kind.Workload && st.Holds(above.GetUID())
	if holds && st.Revision == projection.RevisionMark(of.at.Name, p.hash) {
		return true // as almost always, and what is decided of all clusters is not read for each of them
	}
	if identity.AwaitsIn(above, b.Name) {
		return false
	}
	_, placed := identity.DecisionOf(above)[b.Name]
	switch told := identity.RevisionIn(above, b.Name) == of.at; {
	case p.kind.Workload:
		return told || !placed
	case !told:
		return false
	case holds:
		_, hash, _ := strings.Cut(st.Revision, "@")
		return hash == p.hash
	}
	return !b.Takes(p.kind, above)
}

// looked notes that the cluster was looked at for an object, and returns the workloads that have something else to tell by that.
func (b *beside) looked(key identity.Key) []identity.Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.awaited[key]
	switch {
	case of == nil:
		return nil
	case of.asks == key:
		return []identity.Key{key}
	}
	before := of.says
	if b.look(of); of.says == before {
		return nil
	}
	out := slices.Collect(maps.Keys(of.spoke))
	if i := slices.IndexFunc(of.workloads, func(workload identity.Key) bool { return b.tells(of, workload) }); i >= 0 && !of.spoke[of.workloads[i]] {
		out = append(out, of.workloads[i])
	}
	return out
}

// written notes that the cluster has something else of an object that was known to be there. What was whole may not be any more.
func (b *beside) written(key identity.Key) {
	above := b.Above.Get(key)
	if above == nil || above.GetLabels()[delivery.LabelApplication] == "" {
		return
	}
	name := cache.NewObjectName(key.Namespace, above.GetLabels()[delivery.LabelApplication])
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[name] == nil {
		b.of[name] = &revision{}
	}
	b.of[name].stale = true
}
