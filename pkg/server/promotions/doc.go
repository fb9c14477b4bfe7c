// Package promotions hears from CI and from the Flux of clusters that something is to be promoted, by the webhooks of Weave GitOps.
//
// Nobody logs in: calls are signed with a Secret that the pipeline names. A call to /promotion is believed in nothing. It has the pipeline looked at now, as
// every change of it does, so that it does not matter how often it comes, who sends it, or whether it is sent again. A call to /approval stands for a person
// who asks for the version that waits, and is refused without a signature.
package promotions
