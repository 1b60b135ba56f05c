/** Runs the examples of docs/sdk.md that are named, one after the other, in one process. */
for (const name of process.argv.slice(2)) {
  process.stdout.write(`== ${name}\n`)
  await import(`./sdk-${name}.ts`)
}
