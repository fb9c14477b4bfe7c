// Package framework is what the end-to-end tests stand on: stock clusters and a manifold process, each a process of its own, the stock
// kubectl, and waiting for what the tests claim.
//
// An Environment is a logical cluster with clusters joined to it. Most tests share one, since starting it takes longer than they do;
// each works in a namespace of its own, which is its Scenario. Tests that break something share another one, and leave it well for the next. A
// Suite is both, for the tests of one topic.
//
// Nothing sleeps. A claim is judged on every change that a watch reports, until its deadline; polling is for what has no watch, such as
// processes. To claim that something never happens, a test records what does happen and lets something later happen first.
package framework
