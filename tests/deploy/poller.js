// What applications beside the old Kubernetes leader-elector do: ask for the name now and then, keep the
// answer, compare it with their own. Prints a line whenever the name changes.
const http = require('http');

const port = Number(process.argv[2]);
const everyMs = Number(process.argv[3]);
let leader = {};

function update() {
  const request = http.get({ host: 'localhost', port, path: '/' }, (response) => {
    let text = '';
    response.on('data', (piece) => { text += piece; });
    response.on('end', () => {
      const before = leader.name;
      leader = JSON.parse(text);
      if (leader.name !== before) console.log(`leader is ${leader.name}`);
    });
  });
  request.on('error', (error) => console.log(`problem: ${error.message}`));
  request.end();
}

update();
setInterval(update, everyMs);
