// descriptors.mjs SOCKET: has used up all its descriptors when it says "working", then says
// "cancelled", with what require() does afterwards.
import { openSync, writeSync } from 'node:fs'

const { Gavel } = await import(`${process.env.GAVEL_CLIENTS}/node/gavel.mjs`)
const say = (...words) => writeSync(1, words.join(' ') + '\n')

await new Gavel({ path: process.argv[2] }).run(async ({ signal, require }) => {
  const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
  try {
    for (;;) openSync('/dev/null')
  } catch (error) {
    say('working', error.code)
  }
  await aborted
  try {
    say('cancelled', require())
  } catch (error) {
    say('cancelled', error.name)
  }
  process.exit(0)
})
