/** What coding agents run all day. None of these shows what is in `.env`, or runs what `DENIED` says. */

export const EVERYDAY: readonly string[] = `
git status
git status --short
git status -sb
git --no-pager status
git diff
git diff --stat
git diff --cached
git diff --staged --name-only
git diff HEAD
git diff HEAD~1 -- src
git diff main...HEAD
git diff src/a.ts
git --no-pager diff
git log
git log --oneline -10
git log -p -- src
git log -p -2
git log --stat -3
git log --format=%H -1
git --no-pager log --oneline -5
git show
git show HEAD
git show HEAD:README.md
git show --stat HEAD
git blame src/a.ts
git grep -n main
git grep -n main -- src
git add .
git add -A
git add src/a.ts README.md
git commit -m message
git commit -m "mention .env in the docs"
git commit -am "a message; with, marks = and more"
git commit --amend --no-edit
git mv src/a.ts src/b.ts
git rm src/a.ts
git rm src/*.ts
git rm "*.ts"
git add "*.ts"
git add -A -- ":!dist"
git commit -m "fix *.ts: x" src/a.ts
git stash
git stash pop
git stash list
git stash show -p
git checkout -b feature
git checkout main
git checkout -- src/a.ts
git switch -c feature
git restore src/a.ts
git restore --staged .
git reset --hard HEAD
git reset HEAD~1
git branch -a
git branch -D feature
git fetch origin
git pull
git pull --rebase
git merge main
git rebase main
git cherry-pick abc123
git revert HEAD
git tag v1
git remote -v
git rev-parse HEAD
git rev-parse --show-toplevel
git ls-files
git ls-files src
git check-ignore .env
git worktree list
git config user.name
git clean -n
git init
git clone https://example.org/x.git
git -C src status
git -C . log --oneline
git describe --tags
git submodule update --init
git apply x.patch
git am x.mbox
git format-patch -1
ls
ls -a
ls -la
ls -lah src
ls -R
ls -ltr
ls -d */
ls -l .env
ls src tests
tree
tree -a
tree -L 2 src
find src
find .
find . -name "*.ts"
find . -type f -name "*.py" -not -path "./node_modules/*"
find . -maxdepth 2 -type d
find src -name "*.ts" -mtime -1
fd ts
fd -e ts . src
du -sh .
du -a src
stat src/a.ts
stat .env
test -f .env
[ -f .env ]
[ -d src ] && ls src
[ -f package.json ] && cat package.json
file src/a.ts
mv a b
mv src/a.ts src/b.ts
mv src lib
cp a b
cp src/a.ts src/c.ts
cp -r src lib
cp -a src/. lib
cp -d a b
cp .env.example .env.sample
diff a b
diff -u a b
diff -r src lib
diff -rq src lib
cmp a b
rg main
rg main src
rg -n "a pattern" src
rg -l main
rg -n main -g "*.ts"
rg -t ts main
rg --files
rg -i main README.md
rg -A 3 -B 3 main src
rg -u main
rg "[.]env"
grep main README.md
grep -n main src/a.ts
grep -r main src
grep -rn main src tests
grep -rn main --include="*.ts" .
grep -rln main src
grep -ri "process.env" src
grep -rn ".env" src
grep -c x README.md
grep -d skip main README.md
grep -a main README.md
cat README.md
cat README.md src/a.ts
cat -n src/a.ts
cat src/*
cat *.md
cat package.json | jq .scripts
head -20 src/a.ts
head -n 5 *.md
tail -n 50 log.txt
tail -f log.txt
wc -l src/a.ts
wc -l src/*
wc -l *
sed -n 1,20p src/a.ts
sed -n "1,20p" README.md
sed -i s/a/b/ src/a.ts
sed "s/a/b/g" README.md
awk '{print $1}' README.md
sort README.md
sort -u README.md | uniq -c
cut -d, -f1 data.csv
tr a-z A-Z < README.md
echo hello
echo .env >> .gitignore
echo "x" > out.txt
printf "%s" x
touch src/new.ts
mkdir -p src/deep/er
rmdir empty
rm src/old.ts
rm -rf dist
rm -rf node_modules
chmod +x run.sh
chmod -R u+w src
chown -R user src
ln -s src/a.ts link
ln -sfn ../shared/lib lib/shared && npm run build
git diff origin/main..HEAD
git diff main..dev -- src lib
git tag -f v1
git config user.name
NODE_OPTIONS=--max-old-space-size=4096 npm test
GIT_EDITOR=true git rebase --continue
GIT_PAGER=cat git log --oneline
export PATH=$PWD/node_modules/.bin:$PATH
export PATH="$HOME/.local/bin:$PATH"; node -v
timeout 60 npm test
env FOO=1 npm test
env LC_ALL=C sort a
export LANG=C.UTF-8 LC_ALL=en_US.utf8
LC_ALL=C sort a
tar czf out.tgz src
tar -czf out.tar.gz src tests
tar xzf in.tgz
tar tf in.tgz
zip -r out.zip src
unzip in.zip
npm test
npm ci
npm install
npm install lodash
npm run build
npm run build -- --watch
npm run lint --silent
npm --prefix src test
npm ls
npx tsc --noEmit
npx vitest run src/a.test.ts
npx eslint . --fix
npx prettier --write .
yarn build
pnpm install
pnpm -r test
bun test
node index.js
node --version
node -e "console.log(1)"
node --test
tsc -p .
vitest run
jest src/a.test.ts
eslint src --ext .ts
prettier --check .
python x.py
python3 -m pytest
python3 -c "print(1)"
python -m venv venv
python3 -m http.server --help
pytest
pytest -x tests/test_a.py
pytest -k "a and not b"
pip install -r requirements.txt
pip list
uv sync
uv run pytest
poetry install
ruff check .
mypy src
black .
cargo build
cargo build --release
cargo test
cargo test -- --nocapture
cargo clippy --all-targets
cargo fmt
cargo run
go build ./...
go test ./...
go vet ./...
go mod tidy
make
make test
make -j4 build
make -C src all
cmake -B build
ninja -C build
mvn test
gradle build
docker ps
docker build -t x .
docker compose up -d
docker logs x
docker run --rm x ls
kubectl get pods
terraform plan
gh pr list
gh pr create --title x --body "mentions .env"
gh issue view 3
systemctl status x
ps aux
kill 123
pkill node
env
export NODE_ENV=test
NODE_ENV=test npm test
CI=1 npm test
cd src && ls
cd src && npm test
cd src; cat a.ts
pwd
which node
command -v rg
type node
date
sleep 1
whoami
uname -a
df -h
set -e
set -euo pipefail
set -x
shopt -s globstar
shopt -s nullglob
true
for f in a b; do echo $f; done
for f in src/*.ts; do echo "$f"; done
if [ -f README.md ]; then cat README.md; fi
while read line; do echo $line; done < README.md
npm run build && git diff
npm test 2>&1 | tail -20
npm run lint && npm test
git add -A && git commit -m done
git status && git diff --stat
cat README.md | grep x
ls | wc -l
diff <(sort a) <(sort b)
cat <<EOF
cat > src/x.ts < README.md
cat /proc/cpuinfo
cat /proc/self/status
ls /tmp
curl --version
ps aux | grep node
tail -5 < log.txt
timeout 60 npm test
time npm test
nohup npm start &
jq . package.json
base64 README.md
md5sum README.md
xxd README.md
less README.md
strings README.md
bat README.md
perl -e "print 1"
ruby -e "puts 1"
ssh-keygen -l -f key.pub
rsync -a src/ lib/
echo $(git rev-parse HEAD)
echo \${X:0:3}
`
  .split('\n')
  .filter(Boolean)
  .map((line) => (line === 'cat <<EOF' ? 'cat <<EOF\ntext\nEOF' : line))
