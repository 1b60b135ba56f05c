/** `npm run bench [name…]`: measures on this machine and prints a line each; ratios, because machines differ. */
import { benchEventPage } from './event-page.ts'
import { benchStart } from './start.ts'

const BENCHES: Readonly<Record<string, () => Promise<unknown>>> = {
  start: benchStart,
  'event-page': () => benchEventPage(),
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !(name in BENCHES))
if (unknown.length) {
  console.error(`There is no benchmark ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}.`)
  process.exit(1)
}
for (const [name, bench] of Object.entries(BENCHES)) if (!wanted.length || wanted.includes(name)) await bench()
