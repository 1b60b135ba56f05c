/**
 * `npm run package`: makes the npm package in `dist/npm`, and its archive in `dist`. The package has no build step and no
 * code of other packages but what is bundled; `scripts/check-package.ts` installs and checks it.
 */
import { makePackage } from './package/make-package.ts'

try {
  const { archive, bytes } = await makePackage()
  process.stdout.write(`${archive}: ${(bytes / 1000).toFixed(0)} kB\n`)
} catch (error) {
  process.stderr.write(`No package was made. ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
