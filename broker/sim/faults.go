package sim

import (
	"math/rand/v2"
	"time"
)

// Faults are probabilities of one fault each time it could happen, and the mean pauses between the big ones.
type Faults struct {
	Lose        float64 // a message vanishes
	Double      float64 // a message arrives twice
	Slow        float64 // a message is much later than others, and so overtaken
	ZKLose      float64 // a ZooKeeper request breaks the connection before it is applied
	ZKLoseReply float64 // ... after it is applied

	MoveCrash float64 // a broker dies in a step of a move between log directories
	MoveFail  float64 // a log directory fails in one
	MoveCut   float64 // a log that is about to be cut back has been copied to its end just before

	KillEvery     time.Duration // a process is killed; its page cache survives
	CrashEvery    time.Duration // a machine crashes; unsynced data is lost
	CutEvery      time.Duration // two brokers lose sight of each other
	ZKCutEvery    time.Duration // a broker loses sight of ZooKeeper, sometimes beyond its session
	PauseEvery    time.Duration // a process stands still, as in a long garbage collection
	DiskEvery     time.Duration // a disk is full for a while
	DirEvery      time.Duration // a log directory fails, and is back after a while
	ElectEvery    time.Duration // somebody asks for preferred elections
	CreateEvery   time.Duration // a topic is created
	DeleteEvery   time.Duration // a topic is deleted
	ExpandEvery   time.Duration // partitions are added to a topic
	ForgetEvery   time.Duration // somebody deletes /controller by hand
	ReassignEvery time.Duration // a partition is reassigned, or that is cancelled
	SetEvery      time.Duration // an operator asks for a leader and an ISR
	MoveEvery     time.Duration // a replica is to move to another log directory
	ThrottleEvery time.Duration // replicas are throttled, or not any more
	TrimEvery     time.Duration // somebody deletes the oldest records of a partition
	ProduceEvery  time.Duration // mean pause of one client between records
}

// drawFaults makes each seed a different kind of bad day: some faults are off, some frequent.
func drawFaults(rng *rand.Rand) Faults {
	p := func(most float64) float64 {
		if rng.IntN(3) == 0 {
			return 0
		}
		return most * rng.Float64()
	}
	every := func(least, most time.Duration) time.Duration {
		if rng.IntN(4) == 0 {
			return 0
		}
		return least + time.Duration(rng.Int64N(int64(most-least)))
	}
	return Faults{
		Lose: p(0.03), Double: p(0.03), Slow: p(0.05), ZKLose: p(0.02), ZKLoseReply: p(0.02),
		KillEvery: every(3*time.Second, 40*time.Second), CrashEvery: every(5*time.Second, 60*time.Second),
		CutEvery: every(3*time.Second, 40*time.Second), ZKCutEvery: every(4*time.Second, 40*time.Second),
		PauseEvery: every(5*time.Second, 60*time.Second), DiskEvery: every(10*time.Second, 120*time.Second),
		ElectEvery: every(2*time.Second, 20*time.Second), CreateEvery: every(5*time.Second, 60*time.Second),
		DeleteEvery: every(10*time.Second, 90*time.Second), ExpandEvery: every(10*time.Second, 90*time.Second),
		ForgetEvery:   every(10*time.Second, 90*time.Second),
		ReassignEvery: every(time.Second, 20*time.Second), SetEvery: every(time.Second, 20*time.Second),
		DirEvery:  every(10*time.Second, 90*time.Second),
		MoveEvery: every(time.Second, 15*time.Second), ThrottleEvery: every(time.Second, 20*time.Second),
		MoveCrash: p(0.03), MoveFail: p(0.02),
		MoveCut:      p(1),
		TrimEvery:    every(time.Second, 15*time.Second),
		ProduceEvery: 2*time.Millisecond + time.Duration(rng.Int64N(int64(30*time.Millisecond))),
	}
}
