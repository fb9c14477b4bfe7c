// Package mirrors shows in the logical cluster what lives in one cluster: its pods, its volume claims, and events about what it has of ours.
//
// The mirrors of a kind are a frame: a queue of names to look at, and what is stored above under them. Looking at a name compares what is
// to be shown, which package mirror makes, with what is stored, and writes the difference. It asks package guard first, which is what the API
// server asks when it is written.
package mirrors
