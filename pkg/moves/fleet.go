package moves

import (
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/move"
)

// Fleet is what is known of one workload in all clusters at one moment.
type Fleet struct {
	// Division says how far the workload may be divided, Ordinals that its replicas have ordinals.
	Division placement.Division `json:"division,omitempty"`
	Ordinals bool               `json:"ordinals,omitempty"`
	// Replicas is how many its user asks for, First the first ordinal.
	Replicas int32 `json:"replicas"`
	First    int32 `json:"first,omitempty"`
	// Apart says that each cluster holds what was written through its own view, so that none takes the place of any other.
	Apart bool `json:"apart,omitempty"`
	// Decision is what each cluster is to have in the end.
	Decision placement.Decision `json:"decision,omitempty"`
	// Rollout is what the workload's own strategy says of replacing its pods, Move what its policy says about moving it, nil if nothing.
	Rollout move.Rollout   `json:"rollout,omitzero"`
	Move    *v1alpha1.Move `json:"move,omitempty"`
	// Members are the clusters of the decision, those that the workload's status names, and those that are connected.
	Members map[string]Member `json:"members,omitempty"`
}

// Member is what is known of the workload in one cluster.
type Member struct {
	// Connected says that the cluster has a syncer, Synced that this has seen all that the cluster holds, Shown that it has seen at least what
	// the cluster holds of the workload.
	Connected bool `json:"connected,omitempty"`
	Synced    bool `json:"synced,omitempty"`
	Shown     bool `json:"shown,omitempty"`
	// Silent says that the cluster cannot be reached at the moment.
	Silent bool `json:"silent,omitempty"`
	// Leaving says that the cluster is being removed, Forgotten that this is by force: nobody waits for it any more.
	Leaving   bool `json:"leaving,omitempty"`
	Forgotten bool `json:"forgotten,omitempty"`
	// Lost says that the workload has given up the silent cluster: others may run what it ran.
	Lost bool `json:"lost,omitempty"`
	// Failed says that the cluster cannot hold what was decided, as its problem in the workload's status tells.
	Failed bool `json:"failed,omitempty"`

	// Holds says that the cluster holds the projection, and is to keep it. What follows is empty otherwise.
	Holds bool `json:"holds,omitempty"`
	// Told is how many replicas the cluster was told to run, Ordinals which.
	Told     int32           `json:"told,omitempty"`
	Ordinals placement.Range `json:"ordinals,omitzero"`
	// Asks are the ordinals that the projection in the cluster asks for, whoever wrote them there.
	Asks placement.Range `json:"asks,omitzero"`
	// Running is how many replicas the cluster reports, Available how many of them serve, Unrouted how many of these some Service does not lead
	// to yet.
	Running   int32 `json:"running,omitempty"`
	Available int32 `json:"available,omitempty"`
	Unrouted  int32 `json:"unrouted,omitempty"`
	// Observed says that the controllers of the cluster have seen the projection as it is now.
	Observed bool `json:"observed,omitempty"`
	// Writing is what the cluster is being told by a write that its watch has not shown yet, nil if nothing.
	Writing *Writing `json:"writing,omitempty"`
	// Replacing says that they are replacing pods by others.
	Replacing bool `json:"replacing,omitempty"`
	// Ahead says that its pods are to be updated and none is yet, Updated that all that are to be updated are, and serve.
	Ahead   bool `json:"ahead,omitempty"`
	Updated bool `json:"updated,omitempty"`
	// After are the clusters whose pods are to be updated before those of this one, so that not too many are out of service at a time.
	After []string `json:"after,omitempty"`

	// Keeps are the ordinals that the cluster keeps from others, as it may run them, beside those Reserved for it: what it was told to run by
	// writes that its watch has not shown yet.
	Keeps    []placement.Range `json:"keeps,omitempty"`
	Reserved placement.Range   `json:"reserved,omitzero"`
	// Emptying says that the cluster is to have no ordinals any more and has some.
	Emptying bool `json:"emptying,omitempty"`
	// Address is one from outside that leads to the cluster and keeps its last replicas there, nil if there is none. It is found out only for a
	// cluster that is about to end them.
	Address *Address `json:"address,omitempty"`
	// Recorded is what the workload's status says that the cluster ran last, nil if the status does not name the cluster.
	Recorded *placement.Share `json:"recorded,omitempty"`
}

// Writing bounds how many replicas a cluster runs until its watch shows what is being written to it. Of a workload that runs wherever nodes are, it
// says that the cluster is being told to hold nothing.
type Writing struct {
	Least int32 `json:"least,omitempty"`
	Most  int32 `json:"most,omitempty"`
}

// hull returns bounds that both keep to.
func (w Writing) hull(other Writing) Writing {
	return Writing{Least: min(w.Least, other.Least), Most: max(w.Most, other.Most)}
}

// told returns the ordinals that the cluster was told to run, by what it holds and by what was written.
func (m Member) told() placement.Range { return m.Ordinals.Hull(m.Reserved) }

// serving counts the replicas that are available and that Services lead to, as far as the cluster's controllers have seen its projection.
func (m Member) serving() int32 {
	if !m.Observed {
		return 0
	}
	return m.Available - min(m.Available, m.Unrouted)
}

// ordinals returns the ordinals of a share.
func (f Fleet) ordinals(share placement.Share) placement.Range {
	return share.Ordinals(f.First)
}

// observed returns what every cluster runs: as it is seen or, where nobody can see it, as it was recorded.
func (f Fleet) observed() map[string]move.Observed {
	out := make(map[string]move.Observed, len(f.Members))
	for cluster, m := range f.Members {
		switch {
		case (m.Holds || m.Writing != nil) && !m.Forgotten:
			out[cluster] = m.observed()
		case m.Recorded != nil && !m.Shown && !m.Silent:
			out[cluster] = move.Observed{Replicas: m.Recorded.Replicas}
		}
	}
	return out
}

// observed returns what the cluster runs of replicas without identity. Nobody counts on what it may be giving up.
func (m Member) observed() move.Observed {
	out := move.Observed{
		Replicas: m.Told, Available: m.Available, Unrouted: m.Unrouted, Silent: m.Silent, Replacing: m.Replacing,
	}
	if m.Writing != nil {
		out.Replicas = max(m.Told, m.Writing.Most)
		out.Leaving = out.Replicas - m.Writing.Least
	}
	if !m.Observed {
		out.Leaving = out.Replicas
	}
	return out
}

// recordedElsewhere returns the ordinals that clusters were last known to run which nobody can ask now, but for those that have been given up.
func (f Fleet) recordedElsewhere(cluster string) map[string]placement.Range {
	out := map[string]placement.Range{}
	for other, m := range f.Members {
		if other == cluster || m.Connected && m.Synced || m.Recorded == nil || m.Forgotten || m.Lost {
			continue
		}
		out[other] = m.Recorded.Ordinals(0) // the status counts ordinals as they are
	}
	return out
}
