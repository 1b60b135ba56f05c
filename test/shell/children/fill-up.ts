/** Runs with a limit on the size of files: prints what is executed after a command that did not fit, as JSON. */
import { readFileSync } from 'node:fs'
import { ShellFiles } from '../../../src/shell/shell-files.ts'

const files = new ShellFiles(process.argv[2]!, () => ({
  held: 0,
  push: (bytes) => bytes,
  flush: () => Buffer.alloc(0),
  release: () => Buffer.alloc(0),
}))
files.writeScript('echo first')
let code: unknown
try {
  files.writeScript(`echo ${'x'.repeat(4000)}`)
} catch (error) {
  code = (error as NodeJS.ErrnoException).code
}
files.writeScript('echo a second one')
console.log(JSON.stringify({ code, script: readFileSync(files.scriptPath, 'utf8') }))
