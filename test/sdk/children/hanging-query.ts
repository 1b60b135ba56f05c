/** A program that is killed while its agent works: `node hanging-query.ts '{"prompt":…,"options":…}'`. */
import { query } from '../../../src/index.ts'

const { prompt, options } = JSON.parse(process.argv[2] ?? '{}')
for await (const event of query({ prompt, options })) process.stdout.write(`${event.type}\n`)
