/*
 * gavel for Node: does this replica lead now, and with which fencing token? One file to be copied;
 * nothing but Node 18 or later, on Linux.
 *
 *     const gavel = new Gavel()
 *     if (await gavel.isLeader()) { ... }           // ask before each effect; any doubt is false
 *     const token = await gavel.requireLeader()     // or NotLeader; send it along with the effect
 *     await gavel.run(async ({ token, signal }) => ...)  // attaches; runs while this replica leads
 *
 * A yes is good for the answer's VALID_MS, counted from before the question was sent, less
 * `margin`: by the smallest remainder of the monotonic clock, /proc/uptime (which also counts while
 * the host is suspended) and the wall clock.
 */
import { openSync, readSync } from 'node:fs'
import { connect } from 'node:net'

const AGAIN_MS = 100 // between two attempts to reach the sidecar
const LOOK_MS = 100 // no sleep is longer while something works: timers do not count a suspended host's time
const UPTIME_MS = 10 // /proc/uptime is rounded down to that
const LINE_MOST = 4096
const NUMBER = '([0-9]{1,10})'
const LEADER = new RegExp(`^leader ([0-9]{1,15}) ${NUMBER} ([0-9]{1,19})$`)
const LEASE = new RegExp(`^lease ([0-9]{1,15}) ${NUMBER} ([0-9]{1,19}) ${NUMBER}$`)

/** This replica does not lead, or cannot be sure that it does. */
export class NotLeader extends Error {
  constructor () {
    super('gavel: this replica does not lead')
    this.name = 'NotLeader'
  }
}

let uptimeFd // stays open: an application that has used up its descriptors still has a clock
const uptimeText = Buffer.alloc(64)

/** Milliseconds: monotonic, uptime, wall. */
function now () {
  let uptime = NaN // then nothing is left of any lease
  try {
    uptimeFd ??= openSync('/proc/uptime')
    const length = readSync(uptimeFd, uptimeText, 0, uptimeText.length, 0)
    uptime = Number(uptimeText.toString('latin1', 0, length).split(' ')[0]) * 1000
  } catch {}
  return [performance.now(), uptime, Date.now()]
}

/** What was promised: a token, and until when on each clock. */
class Held {
  constructor (token, since, validMs) {
    this.token = token
    this.ends = since.map((clock) => clock + validMs)
    this.ends[1] -= UPTIME_MS
  }

  leftMs () {
    const clocks = now()
    const left = Math.min(...this.ends.map((end, i) => end - clocks[i]))
    return left > 0 ? left : 0 // NaN too: any doubt is not leader
  }
}

/** From a line that came unasked: only its deadline counts, and only if it can be one of our
 * clock. */
function pushed ([, token, validMs, deadlineNs]) {
  const since = now()
  const left = Number(BigInt(deadlineNs) / 1000n) / 1000 - since[1]
  return left <= Number(validMs) + UPTIME_MS ? new Held(Number(token), since, left) : null
}

/** Calls onLine for each line, then onEnd once; onJunk if it cannot be a sidecar's. */
function open (path, verb, onLine, onEnd, onJunk = (socket) => socket.destroy()) {
  const socket = connect(path)
  let text = ''
  socket.setEncoding('latin1')
  socket.on('connect', () => socket.write(verb.trim() + '\n'))
  socket.on('data', (part) => {
    const lines = (text + part).split('\n')
    text = lines.pop()
    for (const line of lines) if (!socket.destroyed) onLine(line, socket)
    if (text.length > LINE_MOST) onJunk(socket)
  })
  socket.on('error', () => {})
  socket.on('end', () => socket.destroy())
  socket.on('close', onEnd)
  return socket
}

/** Until the time, or the signal, whichever is first. */
function pause (ms, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const timer = setTimeout(end, ms)
    function end () {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    signal?.addEventListener('abort', end)
  })
}

/** An error of a callback: as one that nobody has caught, and only that. */
function report (error) {
  setImmediate(() => { throw error })
}

export class Gavel {
  #path; #election; #timeoutMs; #marginMs
  #end = new AbortController() // of everything
  #following = null // the AbortController of the attachment; null: not attached
  #over = null // promise: the last attachment has ended
  #socket = null // of the attachment, while it is attached
  #held = null // what is held of the lease
  #told = null // the last of it, by which something may still work
  #graceMs = 0
  #working = null // { token, graceMs, abort }
  #runs = null // of run(); null: of none, or it was detached meanwhile
  #revoked = 0 // the token that must not be used any more
  #onRevoke = null
  #stops = false // onRevoke is at it
  #wake = [] // those who wait for a change of all this

  /** election: may be left out where the sidecar has one. */
  constructor ({ path, election = '', timeoutMs = 1000, marginMs = 20 } = {}) {
    this.#path = path ?? process.env.GAVEL_SOCKET ?? '/run/gavel/gavel.sock'
    this.#election = election
    this.#timeoutMs = timeoutMs
    this.#marginMs = marginMs
  }

  async isLeader () {
    return await this.token() !== null
  }

  async requireLeader () {
    const token = await this.token()
    if (token === null) throw new NotLeader()
    return token
  }

  /** The fencing token (a number) while this replica leads, else null. An attached application
   * answers itself from the lease that it was told; else the sidecar is asked each time. */
  async token () {
    const held = this.#following ? this.#lease() : await this.#ask()
    return held && held.leftMs() > this.#marginMs ? held.token : null
  }

  /** What is held. Once found over it stays so until there is a newer one: the wall clock may go
   * back. */
  #lease () {
    if (!(this.#held?.leftMs() > 0)) this.#held = null
    return this.#held
  }

  #ask () {
    const since = now() // before it is sent
    return new Promise((resolve) => {
      const timer = setTimeout(() => socket.destroy(), this.#timeoutMs)
      const socket = open(this.#path, `check ${this.#election}`, (line) => {
        const found = LEADER.exec(line)
        if (found) resolve(new Held(Number(found[1]), since, Number(found[2])))
        socket.destroy()
      }, () => {
        clearTimeout(timer)
        resolve(null)
      })
    })
  }

  /** callback(leader, token) is called now, and at each change. */
  onChange (callback) {
    let told
    const tell = (held) => {
      const token = held && held.leftMs() > this.#marginMs ? held.token : null
      if (told !== token && !this.#end.signal.aborted) {
        told = token
        try {
          callback(token !== null, token)
        } catch (error) {
          report(error)
        }
      }
    }
    const loop = async () => {
      while (!this.#end.signal.aborted) {
        await this.#watch(tell)
        tell(null)
        await pause(AGAIN_MS, this.#end.signal)
      }
    }
    loop()
  }

  #watch (tell) {
    return new Promise((resolve) => {
      let timer = setTimeout(() => socket.destroy(), this.#timeoutMs)
      const socket = open(this.#path, `watch ${this.#election}`, (line) => {
        const found = LEADER.exec(line)
        const held = found && pushed(found)
        clearTimeout(timer)
        tell(held)
        const left = held ? held.leftMs() - this.#marginMs : 0
        if (left > 0) timer = setTimeout(() => tell(null), left + 1)
      }, () => {
        clearTimeout(timer)
        this.#end.signal.removeEventListener('abort', stop)
        resolve()
      })
      const stop = () => socket.destroy()
      this.#end.signal.addEventListener('abort', stop)
    })
  }

  /** From now on this object stands for the whole application: the sidecar leads only while it is
   * attached, and gives leadership away when the process ends. It is attached again after the
   * sidecar was restarted, and does not lead meanwhile. onRevoke(token) is called when leadership
   * is about to end: the promise that it returns is waited for, then the sidecar is told that all
   * work has stopped. Returns at once. */
  attach (onRevoke = null) {
    this.#onRevoke = onRevoke ?? this.#onRevoke
    if (!this.#following) {
      this.#following = new AbortController()
      this.#over = this.#follow(this.#following.signal, this.#over)
    }
  }

  /** Ends the attachment, and gives leadership away at once: all work must have ended. If run() or
   * onRevoke still work, that is done when they have returned, and not waited for. run() then gives
   * undefined. */
  async detach () {
    const following = this.#following
    this.#following = this.#held = this.#runs = null
    this.#working?.abort.abort()
    following?.abort()
    this.#changed()
    if (following && !this.#working && !this.#stops) await this.#over
  }

  /** Ends everything. Work that runs is cancelled; run() then gives undefined. */
  async close () {
    this.#end.abort()
    this.#working?.abort.abort()
    this.#changed()
    if (!this.#runs) await this.detach() // else run() does when the work has ended
  }

  /** Attaches, and calls work({ token, signal, require }) each time that this replica leads. The
   * signal is aborted a tenth to a fifth of ttl before leadership ends; work has to return soon
   * after that, it cannot be killed (`gavelctl exec` can). require() gives the token, to be called
   * before each effect: it throws NotLeader once leadership is over. When work returns by itself,
   * leadership is given away and its result is returned. Fails while another run() has not ended. */
  async run (work) {
    if (this.#runs || this.#working) throw new Error('gavel: another run() has not ended yet')
    const me = this.#runs = {}
    let mine = null
    this.attach()
    try {
      for (;;) {
        mine = await this.#next(me)
        if (!mine) return undefined
        const { signal } = mine.abort
        const require = () => {
          this.#look()
          if (signal.aborted) throw new NotLeader()
          return mine.token
        }
        let result
        try {
          result = await work({ token: mine.token, signal, require })
        } catch (error) {
          if (!signal.aborted || !(error instanceof NotLeader || error?.name === 'AbortError')) throw error
        }
        this.#look()
        if (!signal.aborted) return result
        this.#workEnded(mine)
      }
    } finally {
      this.#workEnded(mine)
      if (this.#runs === me) await this.detach()
    }
  }

  async #next (me) {
    while (!this.#end.signal.aborted && this.#runs === me) {
      if (this.#lease()?.leftMs() > this.#graceMs + this.#marginMs) {
        this.#working = { token: this.#held.token, graceMs: this.#graceMs, abort: new AbortController() }
        this.#guard(this.#working)
        return this.#working
      }
      await this.#change()
    }
    return null
  }

  #change () {
    return new Promise((resolve) => this.#wake.push(resolve))
  }

  #changed () {
    for (const wake of this.#wake.splice(0)) wake()
  }

  /** Cancels the work if it is time. Returns what is left until then. */
  #look () {
    const working = this.#working
    if (!working || working.abort.signal.aborted) return 0
    const held = this.#lease()?.token === working.token ? this.#held : null
    const left = held ? held.leftMs() - working.graceMs : 0
    if (left <= 0) working.abort.abort()
    return left
  }

  async #guard (working) {
    for (let left; this.#working === working && (left = this.#look()) > 0;) {
      await pause(Math.min(left + 1, LOOK_MS), working.abort.signal)
    }
  }

  #workEnded (mine) {
    if (!mine || this.#working !== mine) return
    mine.abort.abort()
    this.#working = null
    this.#done()
    this.#changed()
  }

  /** Says so, if it is owed and nothing works any more. */
  #done () {
    if (this.#revoked && !this.#working && !this.#stops && this.#socket) {
      this.#socket.write(`done ${this.#revoked}\n`)
      this.#told = null
    }
  }

  async #follow (signal, before) {
    await before // something may still work by what that was told
    while (!signal.aborted) {
      const { socket, gone } = await this.#converse(signal)
      this.#socket = this.#held = null
      this.#revoked = 0
      this.#working?.abort.abort()
      // The end of a connection says that nothing works any more, and a new one would vouch for
      // what does: neither before that is so, whatever has gone wrong.
      while (this.#mayWork(gone, signal)) await pause(LOOK_MS)
      this.#told = null
      socket.destroy()
      await pause(AGAIN_MS, signal)
    }
  }

  /** By what was told on a connection. run() knows of its own work; of what else there is we know
   * only that it was told of the lease. */
  #mayWork (gone, signal) {
    const knows = gone || signal.aborted || (this.#runs && !this.#onRevoke)
    return this.#working || this.#stops || (!knows && this.#told?.leftMs() > 0)
  }

  /** Gives { socket, gone }: it may still be open, unless the sidecar has gone. */
  #converse (signal) {
    return new Promise((resolve) => {
      let beats
      let heard = true
      const over = (gone) => {
        heard = false
        clearTimeout(timer)
        clearInterval(beats)
        signal.removeEventListener('abort', leave)
        socket.pause()
        resolve({ socket, gone })
      }
      const leave = () => over(false)
      const timer = setTimeout(() => socket.destroy(), this.#timeoutMs)
      const socket = open(this.#path, `attach ${this.#election}`, (line) => {
        if (!heard) return
        if (this.#socket === socket) {
          const beat = /^beat ([0-9]{1,9})$/.exec(line)
          if (beat) {
            // What is not taken yet waits in our own memory: no more of it then.
            const say = () => socket.writableLength === 0 && socket.write('beat\n')
            clearInterval(beats)
            beats = setInterval(say, Number(beat[1]) / 4)
            say()
          } else {
            this.#hear(line)
          }
        } else if (line === 'ok' && !signal.aborted) {
          clearTimeout(timer)
          this.#socket = socket
          socket.write('lease\n')
        } else {
          socket.destroy()
        }
      }, () => over(true), leave)
      signal.addEventListener('abort', leave)
    })
  }

  #hear (line) {
    const lease = LEASE.exec(line)
    const revoke = /^revoke ([0-9]{1,15}) [0-9]{1,10}$/.exec(line)
    if (lease && Number(lease[1]) !== this.#revoked) {
      const ttlMs = Number(lease[4])
      this.#held = this.#told = pushed(lease)
      this.#graceMs = Math.min(Math.max(ttlMs / 10, 1000), ttlMs / 5)
      this.#look()
      this.#changed()
    } else if (revoke) {
      this.#revoked = Number(revoke[1])
      this.#held = null
      this.#working?.abort.abort()
      if (this.#onRevoke && !this.#stops) this.#stop(this.#revoked)
      else if (this.#runs) this.#done()
    }
  }

  /** An error of onRevoke is no `done`: the lease then runs out. */
  async #stop (token) {
    this.#stops = true
    let stopped = false
    try {
      await this.#onRevoke(token)
      stopped = true
    } catch (error) {
      report(error)
    }
    this.#stops = false
    if (this.#revoked && this.#revoked !== token) this.#stop(this.#revoked) // another one was revoked meanwhile
    else if (stopped) this.#done()
    this.#changed()
  }
}
