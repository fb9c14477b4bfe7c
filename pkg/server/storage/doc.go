// Package storage changes the storage of built-in kinds where a logical cluster differs from a physical one: workloads are placed as
// they are written, mirrors are taken as their cluster reports them, and what a user does to a mirrored pod is done below.
//
// Everything else stays as Kubernetes' own registries have it. Strategies are wrapped rather than REST endpoints where several
// endpoints share one store: the scale subresource of a Deployment, for one, never passes the Deployment's admission, yet must divide
// anew in the same request.
//
// There is a room for each concern: pods, claims, workloads and services. They stand on builtin, below, await and metadata, and not on each other.
package storage
