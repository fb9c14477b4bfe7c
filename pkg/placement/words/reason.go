// Package words holds what is said about a decision: reasons and notes, as values with codes, and their texts, each in one place. Whoever
// decides anything reads the codes; the texts are for people.
package words

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
	ReasonNotJoined            ReasonCode = "NotJoined"
	ReasonNotPinned            ReasonCode = "NotPinned"
	ReasonNotSelected          ReasonCode = "NotSelected"
	ReasonNoWeight             ReasonCode = "NoWeight"
	ReasonNoGroup              ReasonCode = "NoGroup"
	ReasonNoDomain             ReasonCode = "NoDomain"
	ReasonAntiAffinity         ReasonCode = "AntiAffinity"
	ReasonAffinity             ReasonCode = "Affinity"
	ReasonAntiAffinityOfOthers ReasonCode = "AntiAffinityOfOthers"
	ReasonBeyondMax            ReasonCode = "BeyondMaxClusters"
	ReasonTooSmall             ReasonCode = "BelowMinReplicas"
	ReasonEvicted              ReasonCode = "Evicted"
	ReasonLost                 ReasonCode = "Lost"
	ReasonInvalidPolicy        ReasonCode = "InvalidPolicy"
	ReasonNotReady             ReasonCode = "NotReady"
	ReasonUnreachable          ReasonCode = "Unreachable"
	ReasonCordoned             ReasonCode = "Cordoned"
	ReasonTainted              ReasonCode = "Tainted"
	ReasonNotServed            ReasonCode = "KindNotServed"
	ReasonNoClass              ReasonCode = "LacksClass"
	ReasonNoNodes              ReasonCode = "NoNodes"
	ReasonLacks                ReasonCode = "LacksResource"
	ReasonNoVolume             ReasonCode = "VolumeElsewhere"
	ReasonNoHandMade           ReasonCode = "VolumeStaysAbove"
	ReasonOutOfReach           ReasonCode = "VolumeOutOfReach"

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

// reasonTexts are the texts of one cluster and of several, whose name or number stands before. The first %s is the subject.
var reasonTexts = map[ReasonCode][2]string{
	ReasonNotJoined:            {"has not joined", "have not joined"},
	ReasonNotPinned:            {"is not pinned", "are not pinned"},
	ReasonNotSelected:          {"is not selected by %s", "are not selected by %s"},
	ReasonNoWeight:             {"has no weight in %s", "have no weight in %s"},
	ReasonNoGroup:              {"is in no group of %s", "are in no group of %s"},
	ReasonNoDomain:             {"has no label %s", "have no label %s"},
	ReasonAntiAffinity:         {"runs %s, which this workload must stay apart from", "run %s, which this workload must stay apart from"},
	ReasonAffinity:             {"does not run %s, which this workload must be with", "do not run %s, which this workload must be with"},
	ReasonAntiAffinityOfOthers: {"runs %s, whose policy keeps this workload away", "run %s, whose policy keeps this workload away"},
	ReasonBeyondMax: {
		"would exceed the number of clusters that %s allows", "would exceed the number of clusters that %s allows",
	},
	ReasonTooSmall:          {"has no room for %s", "have no room for %s"},
	ReasonEvicted:           {"is being emptied", "are being emptied"},
	ReasonLost:              {"has been unreachable for longer than is tolerated", "have been unreachable for longer than is tolerated"},
	ReasonInvalidPolicy:     {"is ruled out by %s", "are ruled out by %s"},
	ReasonNotReady:          {"is not ready", "are not ready"},
	ReasonUnreachable:       {"is unreachable", "are unreachable"},
	ReasonCordoned:          {"is cordoned", "are cordoned"},
	ReasonTainted:           {"has the untolerated taint %s", "have the untolerated taint %s"},
	ReasonNotServed:         {"does not serve %s", "do not serve %s"},
	ReasonNoClass:           {"lacks %s", "lack %s"},
	ReasonNoVolume:          {"does not have the volumes that it uses", "do not have the volumes that it uses"},
	ReasonNoHandMade:        {"does not accept PersistentVolume %s of the logical cluster", "do not accept PersistentVolume %s of the logical cluster"},
	ReasonOutOfReach:        {"cannot reach PersistentVolume %s because of its nodeAffinity", "cannot reach PersistentVolume %s because of its nodeAffinity"},
	ReasonNoNodes:           {"has no ready node", "have no ready node"},
	ReasonUnschedulable:     {"has no node for some of the pods", "have no node for some of the pods"},
	ReasonLeftUnschedulable: {"could not run some of the pods recently", "could not run some of the pods recently"},
	ReasonRefused:           {"refuses some of the pods", "refuse some of the pods"},
	ReasonDisplaced:         {"makes room for %s, which has a higher priority", "make room for %s, which has a higher priority"},
	ReasonLacks:             {"lacks %s", "lack %s"},
}

// evictedByTaint are the texts of ReasonEvicted where a taint is the subject.
var evictedByTaint = [2]string{"is being emptied because of the taint %s", "are being emptied because of the taint %s"}

// of says it of several clusters, whose number stands before it.
func (r Reason) of(clusters int) string {
	texts, known := reasonTexts[r.Code]
	switch {
	case !known:
		texts = [2]string{"is ruled out: " + string(r.Code), "are ruled out: " + string(r.Code)}
	case r.Code == ReasonEvicted && r.Subject != "":
		texts = evictedByTaint
	}
	text := texts[0]
	if clusters != 1 {
		text = texts[1]
	}
	text = strings.Replace(text, "%s", r.Subject, 1)
	if r.Code == ReasonLacks {
		text += " " + r.amounts()
	}
	return text
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

// Tally counts clusters by their reasons, "1 is cordoned, 2 lack cpu (need 4, free 1.5)": what fewer clusters have in
// common comes first. Of several clusters that lack a resource, the one with most of it is quoted. A cluster that has not joined
// is named, since it is not among those that are counted.
func Tally(clusters []Part) string {
	type group struct {
		reason Reason
		count  int
	}
	groups := map[Reason]*group{}
	var absent []string
	for _, c := range clusters {
		reason := c.Reason
		if reason.Code == "" {
			continue
		}
		if reason.Code == ReasonNotJoined {
			absent = append(absent, fmt.Sprintf("cluster %q %s", c.Name, reason))
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
