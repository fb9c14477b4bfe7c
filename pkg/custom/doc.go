// Package custom decides about custom resources and makes their statuses. They stay above unless they are pinned or a policy lists their kind.
//
// The metadata of all custom resources are watched in pkg/custom/watched, by the informers of the garbage collector. Of those that concern it the
// Controller writes the decision, and the status and breakdown that it makes of what the loops of the clusters report. What these do is in
// pkg/syncer/copies. Objects are read whole only when their status is written.
package custom
