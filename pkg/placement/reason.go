package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ReasonCode is a reason for machines, in the style of condition reasons.
type ReasonCode string

// Why a cluster does not take replicas.
const (
	ReasonNotJoined     ReasonCode = "NotJoined"
	ReasonNotPinned     ReasonCode = "NotPinned"
	ReasonNotSelected   ReasonCode = "NotSelected"
	ReasonNoWeight      ReasonCode = "NoWeight"
	ReasonNoGroup       ReasonCode = "NoGroup"
	ReasonNoDomain      ReasonCode = "NoDomain"
	ReasonCompany       ReasonCode = "AntiAffinity"
	ReasonNoCompany     ReasonCode = "Affinity"
	ReasonKeptApart     ReasonCode = "AntiAffinityOfOthers"
	ReasonBeyondMax     ReasonCode = "BeyondMaxClusters"
	ReasonTooSmall      ReasonCode = "BelowMinReplicas"
	ReasonEvicted       ReasonCode = "Evicted"
	ReasonLost          ReasonCode = "Lost"
	ReasonInvalidPolicy ReasonCode = "InvalidPolicy"
	ReasonNotReady      ReasonCode = "NotReady"
	ReasonUnreachable   ReasonCode = "Unreachable"
	ReasonCordoned      ReasonCode = "Cordoned"
	ReasonTainted       ReasonCode = "Tainted"
	ReasonNotServed     ReasonCode = "KindNotServed"
	ReasonNoClass       ReasonCode = "LacksClass"
	ReasonNoNodes       ReasonCode = "NoNodes"
	ReasonLacks         ReasonCode = "LacksResource"
	ReasonNoVolume      ReasonCode = "VolumeElsewhere"
	ReasonNoHandMade    ReasonCode = "VolumeStaysAbove"
	ReasonUnreached     ReasonCode = "VolumeOutOfReach"

	ReasonUnschedulable     ReasonCode = "Unschedulable"
	ReasonLeftUnschedulable ReasonCode = "LeftUnschedulable"
	ReasonDisplaced         ReasonCode = "Displaced"
	ReasonRefused           ReasonCode = "Refused"
)

// Reason says why a cluster does not take replicas.
type Reason struct {
	Code ReasonCode `json:"code"`
	// Subject is what the reason is about: a policy, taint, kind or resource. What is left out is clear from the code.
	Subject string `json:"subject,omitempty"`
	// Detail is what the cluster itself says, for a cluster that is not ready or cannot schedule pods.
	Detail string `json:"detail,omitempty"`
	// Need and Free are amounts of the resource that the cluster lacks, in the units of Resources.
	Need int64 `json:"need,omitempty"`
	Free int64 `json:"free,omitempty"`
}

// String says what is the matter with one cluster, whose name stands before it: "is cordoned", "lacks cpu (need 4, free 1.5)".
func (r Reason) String() string {
	if r.Detail == "" {
		return r.of(1)
	}
	return r.of(1) + " (" + r.Detail + ")"
}

// of says it of several clusters, whose number stands before it.
func (r Reason) of(clusters int) string {
	is, has, does, lacks, runs, makes, refuses := "is", "has", "does", "lacks", "runs", "makes", "refuses"
	if clusters != 1 {
		is, has, does, lacks, runs, makes, refuses = "are", "have", "do", "lack", "run", "make", "refuse"
	}
	switch r.Code {
	case ReasonNotJoined:
		return has + " not joined"
	case ReasonNotPinned:
		return is + " not pinned"
	case ReasonNotSelected:
		return is + " not selected by " + r.Subject
	case ReasonNoWeight:
		return has + " no weight in " + r.Subject
	case ReasonNoGroup:
		return is + " in no group of " + r.Subject
	case ReasonNoDomain:
		return has + " no label " + r.Subject
	case ReasonCompany:
		return runs + " " + r.Subject + ", which it keeps apart from"
	case ReasonNoCompany:
		return does + " not run " + r.Subject + ", which it keeps near to"
	case ReasonKeptApart:
		return runs + " " + r.Subject + ", whose policy keeps apart from it"
	case ReasonBeyondMax:
		return is + " beyond the number of clusters that " + r.Subject + " allows"
	case ReasonTooSmall:
		return has + " no room for " + r.Subject
	case ReasonEvicted:
		if r.Subject != "" {
			return is + " left because of the taint " + r.Subject
		}
		return is + " being emptied"
	case ReasonLost:
		return has + " been silent for longer than is tolerated"
	case ReasonInvalidPolicy:
		return is + " ruled out by " + r.Subject
	case ReasonNotReady:
		return is + " not ready"
	case ReasonUnreachable:
		return is + " unreachable"
	case ReasonCordoned:
		return is + " cordoned"
	case ReasonTainted:
		return has + " the untolerated taint " + r.Subject
	case ReasonNotServed:
		return does + " not serve " + r.Subject
	case ReasonNoClass:
		return lacks + " " + r.Subject
	case ReasonNoVolume:
		return does + " not have the volumes that it uses"
	case ReasonNoHandMade:
		return does + " not take PersistentVolume " + r.Subject + " of the logical cluster"
	case ReasonUnreached:
		return is + " out of reach of PersistentVolume " + r.Subject + " by its nodeAffinity"
	case ReasonNoNodes:
		return has + " no ready node"
	case ReasonUnschedulable:
		return has + " no node for some of its pods"
	case ReasonLeftUnschedulable:
		return "could not run some of its pods lately"
	case ReasonRefused:
		return refuses + " some of its pods"
	case ReasonDisplaced:
		return makes + " room for " + r.Subject + ", which has a higher priority"
	case ReasonLacks:
		return lacks + " " + r.Subject + " " + r.amounts()
	default:
		return is + " out: " + string(r.Code)
	}
}

func (r Reason) amounts() string {
	name := corev1.ResourceName(r.Subject)
	free := max(0, r.Free)
	need, left := amount(name, r.Need), amount(name, free)
	if need == left {
		need, left = exactAmount(name, r.Need), exactAmount(name, free)
	}
	return fmt.Sprintf("(need %s, free %s)", need, left)
}

// tally counts clusters by the first reason of each, "1 is cordoned, 2 lack cpu (need 4, free 1.5)": what fewer clusters have in
// common comes first. Of several clusters that lack a resource, the one with most of it is quoted. A cluster that has not joined
// is named, since it is not among those that are counted.
func tally(verdicts []Verdict) string {
	type group struct {
		reason Reason
		count  int
	}
	groups := map[Reason]*group{}
	var absent []string
	for _, v := range verdicts {
		if len(v.Reasons) == 0 {
			continue
		}
		reason := v.Reasons[0]
		if reason.Code == ReasonNotJoined {
			absent = append(absent, fmt.Sprintf("cluster %q %s", v.Cluster, reason))
			continue
		}
		key := Reason{Code: reason.Code, Subject: reason.Subject}
		g := groups[key]
		if g == nil {
			g = &group{reason: reason}
			groups[key] = g
		}
		g.count++
		g.reason.Free = max(g.reason.Free, reason.Free)
	}
	counted := make([]*group, 0, len(groups))
	for _, g := range groups {
		counted = append(counted, g)
	}
	slices.SortFunc(counted, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.count, b.count),
			cmp.Compare(a.reason.Code, b.reason.Code), cmp.Compare(a.reason.Subject, b.reason.Subject))
	})
	texts := absent
	for _, g := range counted {
		texts = append(texts, fmt.Sprintf("%d %s", g.count, g.reason.of(g.count)))
	}
	return strings.Join(texts, ", ")
}
