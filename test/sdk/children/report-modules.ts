/** Loaded with `--import`: prints at the end, in one line, what the program has loaded of `src/` and of packages. */
import { registerHooks } from 'node:module'

const loaded: string[] = []
registerHooks({
  load(url, context, nextLoad) {
    loaded.push(url)
    return nextLoad(url, context)
  },
})
process.on('exit', () => process.stdout.write(`\nloaded ${JSON.stringify(loaded)}\n`))
