// Package gavel tells whether this replica leads now, and with which fencing token. One file to be
// copied; the standard library only, on Linux.
//
//	g := gavel.New(gavel.Options{})
//	if g.IsLeader() { ... }              // ask before each effect; any doubt is false
//	token, err := g.RequireLeader()      // or ErrNotLeader; send the token along with the effect
//	err = g.Run(ctx, work)               // attaches; work(ctx, token) runs while this replica leads
//
// A yes is good for the answer's VALID_MS, counted from before the question was sent, less a margin:
// by the smaller remainder of CLOCK_BOOTTIME (never behind the monotonic clock) and CLOCK_REALTIME.
// All methods may be called from any goroutine.
package gavel

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const (
	again         = 100 * time.Millisecond // between two attempts to reach the sidecar
	look          = 100 * time.Millisecond // no sleep is longer while something works: timers do not count a suspended host's time
	clockBoottime = 7
	noClock       = 1 << 62
)

// ErrNotLeader says that this replica does not lead, or cannot be sure that it does.
var ErrNotLeader = errors.New("gavel: this replica does not lead")

// ErrDetached: Detach has ended Run.
var ErrDetached = errors.New("gavel: detached")

// ErrRuns: another Run has not ended yet.
var ErrRuns = errors.New("gavel: another Run has not ended yet")

// Options: what is left out has a default.
type Options struct {
	Socket   string        // $GAVEL_SOCKET, or /run/gavel/gavel.sock
	Election string        // may be left out where the sidecar has one
	Timeout  time.Duration // of a question: 1 s
	Margin   time.Duration // 20 ms
}

// Gavel asks one sidecar about one election.
type Gavel struct {
	options  Options
	mutex    sync.Mutex
	changed  chan struct{} // closed, and replaced, at each change of what follows
	follower context.CancelFunc
	ended    chan struct{} // of the last goroutine that follows or followed: closed when it has ended
	conn     net.Conn      // of the attachment, while it is attached
	held     promise       // what is held of the lease
	told     promise       // the last of it, by which something may still work
	grace    time.Duration
	working  *leadership
	runs     *int   // of Run; nil: of none, or it was detached meanwhile
	revoked  uint64 // the token that must not be used any more
	onRevoke func(token uint64)
	stops    bool // onRevoke is at it
}

type leadership struct {
	token  uint64
	grace  time.Duration // cancelled so long before the end
	cancel context.CancelFunc
	ctx    context.Context
}

// promise: a token, and until when on each clock.
type promise struct {
	token      uint64
	boot, real time.Duration
}

func now() (boot, real time.Duration) {
	var t syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&t)), 0)
	if errno != 0 {
		return noClock, noClock // later than any deadline
	}
	return time.Duration(t.Nano()), time.Duration(time.Now().UnixNano())
}

func (p promise) left() time.Duration {
	if p.token == 0 {
		return 0
	}
	boot, real := now()
	if boot == noClock {
		return 0
	}
	if p.real-real < p.boot-boot {
		return p.real - real
	}
	return p.boot - boot
}

// numbers of a line "VERB N N N"; nil if it is not exactly that.
func numbers(line, verb string, count int) []uint64 {
	words := strings.Split(line, " ")
	if words[0] != verb || len(words) != count+1 {
		return nil
	}
	found := make([]uint64, count)
	for i, word := range words[1:] {
		n, err := strconv.ParseUint(word, 10, 63)
		if err != nil || word[0] == '+' {
			return nil
		}
		found[i] = n
	}
	if found[0] > 1e15 || found[1] > 1e10 {
		return nil
	}
	return found
}

// pushed: a line that came unasked. Only its deadline counts, and only if it can be one of our
// clock.
func pushed(n []uint64) promise {
	if n == nil {
		return promise{}
	}
	boot, real := now()
	left := time.Duration(n[2]) - boot
	if left > time.Duration(n[1])*time.Millisecond {
		return promise{}
	}
	return promise{n[0], boot + left, real + left}
}

// New makes a client. It does not connect yet.
func New(options Options) *Gavel {
	if options.Socket == "" {
		options.Socket = os.Getenv("GAVEL_SOCKET")
	}
	if options.Socket == "" {
		options.Socket = "/run/gavel/gavel.sock"
	}
	if options.Timeout == 0 {
		options.Timeout = time.Second
	}
	if options.Margin == 0 {
		options.Margin = 20 * time.Millisecond
	}
	return &Gavel{options: options, changed: make(chan struct{})}
}

// IsLeader: false if there is any doubt.
func (g *Gavel) IsLeader() bool { return g.Token() != 0 }

// RequireLeader gives the token, or ErrNotLeader.
func (g *Gavel) RequireLeader() (uint64, error) {
	token := g.Token()
	if token == 0 {
		return 0, ErrNotLeader
	}
	return token, nil
}

// Token is the fencing token while this replica leads, else 0. An attached application answers
// itself from the lease that it was told; else the sidecar is asked each time.
func (g *Gavel) Token() uint64 {
	g.mutex.Lock()
	g.heldLeft()
	held, attached := g.held, g.follower != nil
	g.mutex.Unlock()
	if !attached {
		held = g.ask()
	}
	if held.left() <= g.options.Margin {
		return 0
	}
	return held.token
}

// heldLeft: what is left of the lease. Once found over it stays so until there is a newer one: the
// wall clock may go back. The mutex is held.
func (g *Gavel) heldLeft() time.Duration {
	left := g.held.left()
	if left <= 0 {
		g.held = promise{}
	}
	return left
}

func (g *Gavel) connect(verb string) (net.Conn, *bufio.Reader, error) {
	conn, err := net.DialTimeout("unix", g.options.Socket, g.options.Timeout)
	if err != nil {
		return nil, nil, err
	}
	conn.SetDeadline(time.Now().Add(g.options.Timeout))
	if _, err = conn.Write([]byte(strings.TrimSpace(verb+" "+g.options.Election) + "\n")); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, bufio.NewReaderSize(conn, 4096), nil
}

// readLine: longer ones than the buffer are an error.
func readLine(reader *bufio.Reader) (string, error) {
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	return string(line[:len(line)-1]), nil
}

func (g *Gavel) ask() promise {
	boot, real := now() // before it is sent
	conn, reader, err := g.connect("check")
	if err != nil {
		return promise{}
	}
	defer conn.Close()
	line, err := readLine(reader)
	n := numbers(line, "leader", 3)
	if err != nil || n == nil {
		return promise{}
	}
	valid := time.Duration(n[1]) * time.Millisecond
	return promise{n[0], boot + valid, real + valid}
}

// OnChange calls back in a goroutine of its own: now, and at each change, until ctx is done.
func (g *Gavel) OnChange(ctx context.Context, callback func(leader bool, token uint64)) {
	told, first := uint64(0), true
	tell := func(held promise) {
		if held.left() <= g.options.Margin {
			held.token = 0
		}
		if ctx.Err() == nil && (first || told != held.token) {
			first, told = false, held.token
			callback(told != 0, told)
		}
	}
	go func() {
		for ctx.Err() == nil {
			g.watch(ctx, tell)
			tell(promise{})
			pause(ctx, again)
		}
	}()
}

func pause(ctx context.Context, time_ time.Duration) {
	timer := time.NewTimer(time_)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// closeAt ends the connection, and whoever reads from it, when ctx is done.
func closeAt(ctx context.Context, conn net.Conn) (release func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
		case <-over:
		}
		conn.Close()
	}()
	return func() { close(over) }
}

// wakeAt has whoever reads from the connection leave when ctx is done.
func wakeAt(ctx context.Context, conn net.Conn) (release func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			conn.SetReadDeadline(time.Unix(1, 0))
		case <-over:
		}
	}()
	return func() { close(over) }
}

func (g *Gavel) watch(ctx context.Context, tell func(promise)) {
	conn, reader, err := g.connect("watch")
	if err != nil {
		return
	}
	defer closeAt(ctx, conn)()
	var part string
	for heard := false; ; heard = true {
		text, err := reader.ReadSlice('\n')
		var timeout net.Error
		held := promise{}
		switch {
		case err == nil:
			held = pushed(numbers(part+string(text[:len(text)-1]), "leader", 3))
			part = ""
		case errors.As(err, &timeout) && timeout.Timeout() && heard:
			part += string(text)
		default:
			return
		}
		tell(held)
		if left := held.left() - g.options.Margin; left > 0 {
			conn.SetReadDeadline(time.Now().Add(left))
		} else {
			conn.SetReadDeadline(time.Time{})
		}
	}
}

// Attach: from now on this object stands for the whole application. The sidecar leads only while
// it is attached, and gives leadership away when the process ends. It is attached again after the
// sidecar was restarted, and does not lead meanwhile. onRevoke (or nil) is called in a goroutine
// of its own when leadership is about to end: it must stop all work and then return, after which
// the sidecar is told that it is done. Attach returns at once.
func (g *Gavel) Attach(onRevoke func(token uint64)) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if onRevoke != nil {
		g.onRevoke = onRevoke
	}
	if g.follower == nil {
		ctx, cancel := context.WithCancel(context.Background())
		before := g.ended
		g.follower, g.ended = cancel, make(chan struct{})
		go g.follow(ctx, before, g.ended)
	}
}

// Detach ends the attachment, and gives leadership away at once: all work must have ended. If Run or
// onRevoke still work, that is done when they have returned, and not waited for. Run then returns
// ErrDetached.
func (g *Gavel) Detach() {
	g.mutex.Lock()
	cancel, ended := g.follower, g.ended
	g.follower, g.held, g.runs = nil, promise{}, nil
	works := g.working != nil || g.stops
	g.cancelWork()
	g.change()
	g.mutex.Unlock()
	if cancel != nil {
		cancel()
		if !works {
			<-ended
		}
	}
}

// Run attaches, and calls work each time that this replica leads. The context that work is given
// ends a tenth to a fifth of ttl before leadership does; work has to return soon after that, it
// cannot be killed (`gavelctl exec` can). When it returns by itself, leadership is given away and
// its error is returned. Done, ctx ends both. ErrRuns: another Run has not ended yet.
func (g *Gavel) Run(ctx context.Context, work func(ctx context.Context, token uint64) error) error {
	g.mutex.Lock()
	if g.runs != nil || g.working != nil {
		g.mutex.Unlock()
		return ErrRuns
	}
	me := new(int)
	g.runs = me
	g.mutex.Unlock()
	g.Attach(nil)
	g.mutex.Lock()
	gone := g.runs == nil
	g.mutex.Unlock()
	if gone { // detached before it was attached
		g.Detach()
		return ErrDetached
	}
	var mine *leadership
	defer func() {
		g.workEnded(mine)
		g.mutex.Lock()
		own := g.runs == me
		g.mutex.Unlock()
		if own {
			g.Detach()
		}
	}()
	for {
		var err error
		mine, err = g.next(ctx, me)
		if err != nil {
			return err
		}
		err = work(mine.ctx, mine.token)
		lost := mine.ctx.Err() != nil || g.left(mine.token) <= mine.grace
		mine.cancel()
		if !lost || ctx.Err() != nil {
			return err
		}
		g.workEnded(mine)
	}
}

func (g *Gavel) next(ctx context.Context, me *int) (*leadership, error) {
	for {
		g.mutex.Lock()
		if g.runs != me {
			g.mutex.Unlock()
			return nil, ErrDetached
		}
		if g.heldLeft() > g.grace+g.options.Margin {
			mine, cancel := context.WithCancel(ctx)
			g.working = &leadership{g.held.token, g.grace, cancel, mine}
			go g.guard(g.working)
			defer g.mutex.Unlock()
			return g.working, nil
		}
		changed := g.changed
		g.mutex.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

func (g *Gavel) left(token uint64) time.Duration {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.held.token != token {
		return 0
	}
	return g.heldLeft()
}

// guard cancels the work in time, by the clock.
func (g *Gavel) guard(working *leadership) {
	for working.ctx.Err() == nil {
		left := g.left(working.token) - working.grace
		if left <= 0 {
			working.cancel()
			return
		}
		if left > look {
			left = look
		}
		pause(working.ctx, left)
	}
}

// change: the mutex is held.
func (g *Gavel) change() {
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *Gavel) cancelWork() {
	if g.working != nil {
		g.working.cancel()
	}
}

func (g *Gavel) workEnded(mine *leadership) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if mine == nil || g.working != mine {
		return
	}
	g.cancelWork()
	g.working = nil
	g.done()
	g.change()
}

// done says so, if it is owed and nothing works any more. The mutex is held.
func (g *Gavel) done() {
	if g.revoked != 0 && g.working == nil && !g.stops && g.conn != nil {
		g.say("done " + strconv.FormatUint(g.revoked, 10))
		g.told = promise{}
	}
}

// say writes one line on the attachment, without waiting. One that is not taken is as if it had not
// been said: there are hundreds before it that the sidecar has not read, and the end of the
// connection would say that all work has stopped. The mutex is held.
func (g *Gavel) say(line string) {
	if raw, err := g.conn.(*net.UnixConn).SyscallConn(); err == nil {
		_ = raw.Write(func(fd uintptr) bool {
			_, _ = syscall.Write(int(fd), []byte(line+"\n")) // so short a line is taken, or not
			return true
		})
	}
}

func (g *Gavel) follow(ctx context.Context, before, ended chan struct{}) {
	defer close(ended)
	if before != nil {
		<-before // something still works by what that was told
	}
	for ctx.Err() == nil {
		conn, reader, err := g.connect("attach")
		gone := true
		if err == nil {
			gone = g.converse(ctx, conn, reader)
		}
		g.waitForWork(ctx, gone)
		if err == nil {
			conn.Close()
		}
		pause(ctx, again)
	}
}

// waitForWork: the end of a connection says that nothing works any more, and a new one would vouch
// for what does. Neither before that is so, whatever has gone wrong.
func (g *Gavel) waitForWork(ctx context.Context, gone bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.conn, g.held, g.revoked = nil, promise{}, 0
	g.cancelWork()
	for g.mayWork(ctx, gone) {
		changed, timer := g.changed, time.NewTimer(look)
		g.mutex.Unlock()
		select {
		case <-timer.C:
		case <-changed:
		}
		timer.Stop()
		g.mutex.Lock()
	}
	g.told = promise{}
}

// mayWork, by what was told on a connection. Run knows of its own work; of what else there is we
// know only that it was told of the lease.
func (g *Gavel) mayWork(ctx context.Context, gone bool) bool {
	knows := gone || ctx.Err() != nil || (g.runs != nil && g.onRevoke == nil)
	return g.working != nil || g.stops || (!knows && g.told.left() > 0)
}

// converse returns whether it was the sidecar that has ended it.
func (g *Gavel) converse(ctx context.Context, conn net.Conn, reader *bufio.Reader) bool {
	defer wakeAt(ctx, conn)()
	if line, err := readLine(reader); err != nil || line != "ok" {
		return false
	}
	conn.SetDeadline(time.Time{})
	if ctx.Err() != nil { // it may have been woken before that
		return false
	}
	g.mutex.Lock()
	g.conn = conn
	g.say("lease")
	g.mutex.Unlock()
	beats, stop := context.WithCancel(ctx)
	defer stop()
	for {
		line, err := readLine(reader)
		if err != nil {
			return err != bufio.ErrBufferFull && ctx.Err() == nil
		}
		if n := numbers(line+" 0", "beat", 2); n != nil {
			go g.beat(beats, time.Duration(n[0])*time.Millisecond/4)
		} else {
			g.hear(ctx, line)
		}
	}
}

func (g *Gavel) beat(ctx context.Context, every time.Duration) {
	for ctx.Err() == nil {
		g.mutex.Lock()
		if g.conn != nil {
			g.say("beat")
		}
		g.mutex.Unlock()
		pause(ctx, every)
	}
}

func (g *Gavel) hear(ctx context.Context, line string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if ctx.Err() != nil {
		return
	}
	if n := numbers(line, "lease", 4); n != nil && n[0] != g.revoked {
		g.held = pushed(n)
		g.told = g.held
		ttl := time.Duration(n[3]) * time.Millisecond
		if g.grace = ttl / 10; g.grace < time.Second {
			g.grace = time.Second
		}
		if g.grace > ttl/5 {
			g.grace = ttl / 5
		}
		if g.working != nil && g.working.token != n[0] {
			g.cancelWork()
		}
		g.change()
	} else if n := numbers(line, "revoke", 2); n != nil {
		g.revoked, g.held = n[0], promise{}
		g.cancelWork()
		if g.onRevoke != nil && !g.stops {
			g.stops = true
			go g.stop(n[0])
		} else if g.runs != nil {
			g.done()
		}
	}
}

func (g *Gavel) stop(token uint64) {
	g.onRevoke(token)
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.stops = false
	if g.revoked == token {
		g.done()
	} else if g.revoked != 0 { // another one was revoked meanwhile
		g.stops = true
		go g.stop(g.revoked)
	}
	g.change()
}
