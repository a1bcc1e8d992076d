// Speaks the line protocol of ../languages.py with the client for Node: program.mjs SOCKET ELECTION
import { readFileSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

const { Gavel } = await import(`${process.env.GAVEL_CLIENTS}/node/gavel.mjs`)
const gavel = new Gavel({ path: process.argv[2], election: process.argv[3] })
let finish = { promise: null, now: null }
const renew = () => { finish.promise = new Promise((resolve) => { finish.now = resolve }) }
renew()

let go // onRevoke may return
const mayGo = new Promise((resolve) => { go = resolve })
const throws = 'THROWS' in process.env // every callback fails
if (throws) process.on('uncaughtException', () => say('failed'))
const sayAndThrow = (...words) => {
  say(...words)
  if (throws) throw new Error(words)
}
const say = (...words) => writeSync(1, words.join(' ') + '\n')
const nowNs = () => BigInt(readFileSync('/proc/uptime', 'latin1').split(' ')[0].replace('.', '')) * 10000000n

async function work ({ token, signal }) {
  say('started', token, nowNs())
  const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
  await Promise.race([aborted, finish.promise])
  if (signal.aborted) say('cancelled', token, nowNs())
  await finish.promise
  renew()
  say('stopped', token, nowNs())
  return 'returned'
}

const verbs = {
  is_leader: async () => say('is_leader', await gavel.isLeader()),
  token: async () => say('token', await gavel.token() ?? '-'),
  require: async () => say('require', await gavel.requireLeader().catch((e) => e.name === 'NotLeader' ? 'not-leader' : e)),
  watch: () => gavel.onChange((leader, token) => sayAndThrow('change', leader, token ?? '-')),
  attach: () => gavel.attach(async (token) => {
    sayAndThrow('revoked', token, nowNs())
    if (process.env.SLOW) await mayGo
  }),
  detach: async () => { await gavel.detach(); say('detached') },
  run: () => gavel.run(work).then((result) => say(result ?? 'refused'), () => say('refused')),
  finish: () => finish.now(),
  go: () => go(),
  churn: async () => {
    for (let i = 0; i < 25; i++) {
      gavel.attach()
      const ended = gavel.detach()
      gavel.attach()
      await Promise.all([ended, gavel.detach()])
    }
    say('churned')
  }
}
const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => verbs[line.trim()]())
lines.on('close', () => process.exit(0))
