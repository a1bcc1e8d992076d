// Speaks the line protocol of ../languages.py with the client for Node: program.mjs SOCKET ELECTION
import { readFileSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

const { Gavel } = await import(`${process.env.GAVEL_CLIENTS}/node/gavel.mjs`)
const gavel = new Gavel({ path: process.argv[2], election: process.argv[3] })
let finish = { promise: null, now: null }
const renew = () => { finish.promise = new Promise((resolve) => { finish.now = resolve }) }
renew()

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
}

const verbs = {
  is_leader: async () => say('is_leader', await gavel.isLeader()),
  token: async () => say('token', await gavel.token() ?? '-'),
  require: async () => say('require', await gavel.requireLeader().catch((e) => e.name === 'NotLeader' ? 'not-leader' : e)),
  watch: () => gavel.onChange((leader, token) => say('change', leader, token ?? '-')),
  attach: () => gavel.attach((token) => say('revoked', token, nowNs())),
  detach: async () => { await gavel.detach(); say('detached') },
  run: async () => { await gavel.run(work); say('returned') },
  finish: () => finish.now()
}
const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => verbs[line.trim()]())
lines.on('close', () => process.exit(0))
