package controller

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/invariant"
)

// job is one unit of the controller's work. Jobs run one at a time in the order of their arrival, as on
// Apache Kafka's single event thread; a job may wait for several ZooKeeper rounds. run must lead to exactly
// one call of done.
type job struct {
	kind string
	key  string // coalescing key; empty: never coalesced
	at   time.Time
	run  func(done func())
	// request is answered with NOT_CONTROLLER when the role ends before the job did.
	requestID uint64
	request   kmsg.Request
}

// enqueue adds a job.
func (c *Controller) enqueue(j *job) {
	j.at = c.now
	c.jobs = append(c.jobs, j)
}

// enqueueOnce adds a job unless an equal one is waiting already: many watch events for one list cost one
// read of it. subject tells jobs of the same kind apart.
func (c *Controller) enqueueOnce(kind, subject string, run func(done func())) {
	key := kind + "/" + subject
	if c.queued[key] {
		return
	}
	c.queued[key] = true
	c.enqueue(&job{kind: kind, key: key, run: run})
}

// enqueueRequest adds the job of a client's or broker's request, or refuses it when we do not hold the
// role; one that comes during a takeover waits for its end.
func (c *Controller) enqueueRequest(kind string, id uint64, req kmsg.Request, run func(done func())) {
	if c.role != roleActive && c.role != roleLoading {
		c.emit(Reply{RequestID: id, Response: notController(req)})
		return
	}
	c.enqueue(&job{kind: kind, run: run, requestID: id, request: req})
}

// runJobs starts jobs until one has to wait.
func (c *Controller) runJobs() {
	for c.running == nil && len(c.jobs) > 0 {
		j := c.jobs[0]
		c.jobs[0] = nil
		c.jobs = c.jobs[1:]
		if j.key != "" {
			delete(c.queued, j.key)
		}
		c.running = j
		c.emit(JobStarted{Kind: j.kind, Waited: c.now.Sub(j.at)})
		j.run(func() { c.jobDone(j) })
	}
	if c.running == nil {
		c.flush()
	}
}

// jobDone ends the running job and publishes what it decided.
func (c *Controller) jobDone(j *job) {
	invariant.Assert(c.running == j, "job %s ended twice", j.kind)
	c.running = nil
	c.flush()
}

// refuseRequests answers every waiting request when the role ends.
func (c *Controller) refuseRequests() {
	jobs := c.jobs
	if c.running != nil {
		jobs = append([]*job{c.running}, jobs...)
	}
	for _, h := range c.handovers {
		c.emit(Reply{RequestID: h.requestID, Response: notController(h.request)})
	}
	for _, j := range jobs {
		if j.request != nil {
			c.emit(Reply{RequestID: j.requestID, Response: notController(j.request)})
		}
	}
}
