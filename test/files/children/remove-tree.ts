/** Removes the tree of its argument, and prints by how many bytes its memory has grown at most. */
import { removeTree } from '../../../src/files/trees/remove-tree.ts'

const before = process.memoryUsage.rss()
let most = 0
const watch = setInterval(() => (most = Math.max(most, process.memoryUsage.rss() - before)), 5)
await removeTree(process.argv[2] ?? '')
clearInterval(watch)
process.stdout.write(String(most))
