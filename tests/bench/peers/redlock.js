// node redlock.js MODULES PORT TTL_MS: holds one lock with npm's redlock, and extends it each ttl/3.
const { createRequire } = require('module')
const needed = createRequire(process.argv[2] + '/')
const Redis = needed('ioredis')
const Redlock = needed('redlock')

const ttl = Number(process.argv[4])
const redlock = new Redlock([new Redis(Number(process.argv[3]), '127.0.0.1')])

async function hold() {
  let lock = await redlock.lock('bench:redlock', ttl)
  console.log('ready')
  setInterval(async () => { lock = await lock.extend(ttl) }, ttl / 3)
}

hold().catch((error) => { console.error(error); process.exit(1) })
