"""What Spark knows of time zones before 1900, where it rebases timestamps of the hybrid calendar.

Made by scripts/calendar_zones.py from Spark's tables; a line for each rule, and its zones:

    OFFSET CORRECTION[ TIME CORRECTION]...: ZONE...

OFFSET is the offset from UTC, in seconds, by which java.util counts all times before 1900; a CORRECTION is how many
seconds the offset of java.time, which is the local mean time of the place, is less, from TIME (epoch seconds) on.
Newer releases of the time zone database tell other local mean times of some places; Spark keeps those of its tables.
Source: RebaseDateTime, julian-gregorian-rebase-micros.json (Spark 3.0 to 4.3).
"""

ZONES = """
-43200 0: Etc/GMT+12
-39600 -85032 -2445426000 1368 -2208988800 0: Pacific/Midway Pacific/Pago_Pago Pacific/Samoa US/Samoa
-39600 0: Etc/GMT+11
-39600 1180 -2208988800 0: Pacific/Niue
-36000 -84056 -2209557600 2344 -2208988800 0: Pacific/Rarotonga
-36000 -80002 -3225230125 6398 -2208988800 0: America/Adak America/Atka US/Aleutian
-36000 -104 -2208988800 0: Pacific/Tahiti
-36000 0: Etc/GMT+10 SystemV/HST10
-36000 1886 -2334103114 1800 -2208988800 0: Pacific/Honolulu Pacific/Johnston US/Hawaii
-34200 -720 -2208988800 0: Pacific/Marquesas
-32400 -87222 -3225222905 -822 -2208988800 0: America/Metlakatla
-32400 -86539 -3225223588 -139 -2208988800 0: America/Juneau
-32400 -86327 -3225223800 73 -2208988800 0: America/Sitka
-32400 -85265 -3225224862 1135 -2208988800 0: America/Yakutat
-32400 -82824 -3225227303 3576 -2208988800 0: America/Anchorage US/Alaska
-32400 -79102 -3225231025 7298 -2208988800 0: America/Nome
-32400 -12 -2208988800 0: Pacific/Gambier
-32400 0: Etc/GMT+9 SystemV/YST9 SystemV/YST9YDT
-28800 -716 -2208988800 0: America/Ensenada America/Santa_Isabel America/Tijuana Mexico/BajaNorte
-28800 -422 -2717640000 0: America/Los_Angeles US/Pacific
-28800 0: Etc/GMT+8 PST8PDT SystemV/PST8 SystemV/PST8PDT
-28800 748 -2713880852 0: America/Vancouver Canada/Pacific
-28800 2420 -2208988800 0: Pacific/Pitcairn
-25200 -25200 -2208988800 0: America/Cambridge_Bay America/Inuvik America/Yellowknife
-25200 -140 -2208988800 0: America/Ojinaga
-25200 -4 -2717643600 0: America/Denver America/Shiprock Navajo US/Mountain
-25200 0: Etc/GMT+7 MST7MDT SystemV/MST7 SystemV/MST7MDT
-25200 260 -2208988800 0: America/Chihuahua
-25200 340 -2208988800 0: America/Mazatlan Mexico/BajaSur
-25200 1432 -2208988800 0: America/Hermosillo
-25200 1698 -2717643600 0: America/Creston America/Phoenix US/Arizona
-25200 2032 -2208988800 0: America/Edmonton Canada/Mountain
-25200 2689 -2717643600 3600 -2208988800 0: America/Boise
-25200 3656 -2713885144 3600 -2208988800 0: America/Dawson_Creek
-25200 4247 -2713884553 3600 -2208988800 0: America/Fort_Nelson
-25200 7212 -2208988800 0: America/Whitehorse Canada/Yukon
-25200 8260 -2208988800 0: America/Dawson
-21600 -21600 -2208988800 0: America/Rankin_Inlet America/Resolute
-21600 -1427 -2208988800 0: America/Costa_Rica
-21600 -892 -2524500004 -888 -2208988800 0: America/Managua
-21600 -810 -2717647200 0: America/Indiana/Knox America/Knox_IN US/Indiana-Starke
-21600 -777 -2717647200 0: America/Indiana/Tell_City
-21600 -668 -2208988800 0: America/Tegucigalpa
-21600 -573 -2659759773 0: America/Menominee
-21600 -564 -2717647200 0: America/Chicago US/Central
-21600 -432 -2208988800 0: America/Belize
-21600 -192 -2208988800 0: America/El_Salvador
-21600 -96 -2208988800 0: Pacific/Galapagos
-21600 -92 -2208988800 0: America/Merida
-21600 0: CST6CDT Etc/GMT+6 SystemV/CST6 SystemV/CST6CDT
-21600 124 -2208988800 0: America/Guatemala
-21600 1096 -2366732504 0: America/Rainy_River
-21600 1716 -2602258284 0: America/Winnipeg Canada/Central
-21600 2196 -2208988800 0: America/Mexico_City Mexico/General
-21600 2400 -2208988800 0: America/Matamoros
-21600 2476 -2208988800 0: America/Monterrey
-21600 2712 -2717647200 3600 -2208988800 0: America/North_Dakota/Center
-21600 2739 -2717647200 3600 -2208988800 0: America/North_Dakota/New_Salem
-21600 2827 -2717647200 3600 -2208988800 0: America/North_Dakota/Beulah
-21600 3516 -2208988800 0: America/Regina Canada/Saskatchewan
-21600 3660 -2208988800 0: America/Bahia_Banderas
-21600 4280 -2208988800 0: America/Swift_Current
-21600 4648 -2208988800 0: Chile/EasterIsland Pacific/Easter
-18000 -18000 -2208988800 0: America/Iqaluit America/Pangnirtung
-18000 -1728 -2208988800 0: America/Porto_Acre America/Rio_Branco Brazil/Acre
-18000 -1232 -2208988800 0: America/Eirunepe
-18000 -928 -2524504958 430 -2208988800 0: America/Grand_Turk
-18000 -640 -2524503580 -660 -2208988800 0: America/Port-au-Prince
-18000 -238 -2717650800 0: America/New_York US/Eastern
-18000 -224 -2208988800 0: America/Bogota
-18000 0: EST5EDT Etc/GMT+5 SystemV/EST5 SystemV/EST5EDT
-18000 430 -2208988800 0: America/Jamaica Jamaica
-18000 492 -2524503624 516 -2208988800 0: America/Lima
-18000 1052 -2366736148 0: America/Montreal America/Nassau America/Toronto Canada/Eastern
-18000 1088 -2524503688 1176 -2208988800 0: America/Atikokan America/Cayman America/Coral_Harbour America/Panama
-18000 1160 -2524503280 840 -2208988800 0: America/Guayaquil
-18000 1768 -2524503608 1776 -2208988800 0: America/Havana Cuba
-18000 1931 -2208988800 0: America/Detroit US/Michigan
-18000 2364 -2717650800 3600 -2208988800 0: America/Kentucky/Monticello
-18000 2416 -2717650800 3600 -2208988800 0: America/Indiana/Vevay
-18000 2582 -2717650800 3600 -2208988800 0: America/Kentucky/Louisville America/Louisville
-18000 2678 -2717650800 3600 -2208988800 0: America/Fort_Wayne America/Indiana/Indianapolis America/Indianapolis
 US/East-Indiana
-18000 2723 -2717650800 3600 -2208988800 0: America/Indiana/Marengo
-18000 2785 -2717650800 3600 -2208988800 0: America/Indiana/Winamac
-18000 2824 -2208988800 0: America/Cancun
-18000 2947 -2717650800 3600 -2208988800 0: America/Indiana/Petersburg
-18000 3007 -2717650800 3600 -2208988800 0: America/Indiana/Vincennes
-18000 3184 -2366734016 0: America/Nipigon
-18000 3420 -2366737380 3600 -2208988800 0: America/Thunder_Bay
-14400 -1292 -2208988800 0: America/Campo_Grande
-14400 -940 -2208988800 0: America/Cuiaba
-14400 -560 -2208988800 0: America/Asuncion
-14400 -441 -2208988800 0: America/Guyana
-14400 -91 -2208988800 0: America/Barbados
-14400 -12 -2208988800 0: America/Glace_Bay
-14400 0: Etc/GMT+4 SystemV/AST4 SystemV/AST4ADT
-14400 4 -2208988800 0: America/Manaus Brazil/West
-14400 100 -2713894152 -1748 -2208988800 0: America/Goose_Bay
-14400 160 -2208988800 0: America/Boa_Vista
-14400 260 -2208988800 0: America/Martinique
-14400 864 -2208988800 0: America/Halifax Canada/Atlantic
-14400 936 -2208988800 0: America/Porto_Velho
-14400 1148 -2715885652 3600 -2208988800 0: America/Moncton
-14400 1158 -2208988800 0: Atlantic/Bermuda
-14400 1465 -2233035335 0: America/Anguilla America/Antigua America/Aruba America/Blanc-Sablon America/Curacao
 America/Dominica America/Grenada America/Guadeloupe America/Kralendijk America/Lower_Princes America/Marigot
 America/Montserrat America/Port_of_Spain America/Puerto_Rico America/St_Barthelemy America/St_Kitts America/St_Lucia
 America/St_Thomas America/St_Vincent America/Tortola America/Virgin
-14400 1664 -2524507196 1660 -2208988800 0: America/Caracas
-14400 1956 -2208988800 0: America/La_Paz
-14400 2108 -2208988800 0: America/Thule
-14400 2376 -2524507224 2400 -2208988800 0: America/Santo_Domingo
-14400 2565 -2208988800 0: America/Santiago Chile/Continental
-12600 52 -2208988800 0: America/St_Johns Canada/Newfoundland
-10800 -10800 -2208988800 0: Antarctica/Palmer Antarctica/Rothera
-10800 -2424 -2208988800 0: America/Recife
-10800 -2228 -2208988800 0: America/Maceio
-10800 -1560 -2208988800 0: America/Fortaleza
-10800 -1556 -2208988800 0: America/Bahia
-10800 0: Etc/GMT+3
-10800 388 -2208988800 0: America/Sao_Paulo Brazil/East
-10800 768 -2208988800 0: America/Araguaina
-10800 836 -2208988800 0: America/Belem
-10800 1616 -2208988800 0: America/Godthab America/Nuuk
-10800 1760 -2208988800 0: America/Cayenne
-10800 2328 -2208988800 0: America/Santarem
-10800 2440 -2208988800 0: America/Paramaribo
-10800 2680 -2208988800 0: America/Miquelon
-10800 2691 -2208988800 0: America/Montevideo
-10800 3084 -2208988800 0: Atlantic/Stanley
-10800 3228 -2372102580 4608 -2208988800 0: America/Argentina/Buenos_Aires America/Buenos_Aires
-10800 4608 -2208988800 0: America/Argentina/Cordoba America/Cordoba America/Rosario
-10800 4852 -2372100956 4608 -2208988800 0: America/Argentina/Tucuman
-10800 4872 -2372100936 4608 -2208988800 0: America/Argentina/Jujuy America/Jujuy
-10800 4900 -2372100908 4608 -2208988800 0: America/Argentina/Salta
-10800 4988 -2372100820 4608 -2208988800 0: America/Argentina/Catamarca America/Argentina/ComodRivadavia
 America/Catamarca
-10800 5124 -2372100684 4608 -2208988800 0: America/Argentina/San_Luis
-10800 5244 -2372100564 4608 -2208988800 0: America/Argentina/La_Rioja
-10800 5592 -2372100216 4608 -2208988800 0: America/Argentina/Ushuaia
-10800 5644 -2372100164 4608 -2208988800 0: America/Argentina/San_Juan
-10800 5716 -2372100092 4608 -2208988800 0: America/Argentina/Mendoza America/Mendoza
-10800 5812 -2372099996 4608 -2208988800 0: America/Argentina/Rio_Gallegos
-10800 6220 -2524510745 6165 -2208988800 0: America/Punta_Arenas
-7200 0: Etc/GMT+2
-7200 580 -2208988800 0: America/Noronha Brazil/DeNoronha
-7200 1568 -2524512832 0: Atlantic/South_Georgia
-3600 0: Etc/GMT+1
-3600 1672 -2208988800 0: America/Scoresbysund
-3600 2044 -2208988800 0: Atlantic/Cape_Verde
-3600 2560 -2713907512 3272 -2208988800 0: Atlantic/Azores
0 -1616 -2713914221 2205 -2208988800 0: Africa/Sao_Tome
0 0: Antarctica/Troll Etc/GMT Etc/GMT+0 Etc/GMT-0 Etc/GMT0 Etc/Greenwich Etc/UCT Etc/UTC Etc/Universal Etc/Zulu GMT GMT0
 Greenwich UCT UTC Universal WET Zulu
0 75 -3852662325 0: Europe/Belfast Europe/Guernsey Europe/Isle_of_Man Europe/Jersey Europe/London GB GB-Eire
0 968 -2208988800 0: Africa/Abidjan Africa/Accra Africa/Bamako Africa/Banjul Africa/Conakry Africa/Dakar Africa/Freetown
 Africa/Lome Africa/Nouakchott Africa/Ouagadougou Africa/Timbuktu Atlantic/Reykjavik Atlantic/St_Helena Iceland
0 1521 -2208988800 0: Eire Europe/Dublin
0 1624 -2208988800 0: Atlantic/Faeroe Atlantic/Faroe
0 1820 -2208988800 0: Africa/Casablanca
0 2205 -2208988800 0: Europe/Lisbon Portugal
0 2588 -2208988800 0: Africa/Monrovia
0 3168 -2208988800 0: Africa/El_Aaiun
0 3696 -2208988800 0: Atlantic/Canary
0 3740 -2208988800 0: Africa/Bissau
0 4056 -2208988800 0: Atlantic/Madeira
0 4480 -2208988800 0: America/Danmarkshavn
3600 -1440 -2208988800 0: Europe/Warsaw Poland
3600 -1320 -2713915320 0: Europe/Belgrade Europe/Ljubljana Europe/Podgorica Europe/Sarajevo Europe/Skopje Europe/Zagreb
3600 -1160 -2208988800 0: Europe/Tirane
3600 -980 -2498260580 0: Europe/Budapest
3600 -321 -2422055121 0: Europe/Vienna
3600 -12 -2208988800 0: Africa/Ndjamena
3600 0: CET Etc/GMT-1 MET
3600 116 -2403478684 0: Europe/Malta
3600 136 -2469401864 0: Europe/Bratislava Europe/Prague
3600 392 -2422054408 0: Arctic/Longyearbyen Atlantic/Jan_Mayen Europe/Berlin Europe/Copenhagen Europe/Oslo
 Europe/Stockholm
3600 604 -2403565200 0: Europe/Rome Europe/San_Marino Europe/Vatican
3600 1156 -2797205483 3039 -2208988800 0: Africa/Tunis
3600 1552 -3675200662 1814 -2385246586 0: Europe/Busingen Europe/Vaduz Europe/Zurich
3600 2550 -2450998800 3600 -2208988800 0: Europe/Amsterdam Europe/Brussels Europe/Luxembourg
3600 2785 -2208988800 0: Africa/Bangui Africa/Brazzaville Africa/Douala Africa/Kinshasa Africa/Lagos Africa/Libreville
 Africa/Luanda Africa/Malabo Africa/Niamey Africa/Porto-Novo
3600 2868 -2486595771 3039 -2208988800 0: Africa/Algiers
3600 3039 -2208988800 0: Europe/Monaco Europe/Paris
3600 3236 -2208988800 0: Europe/Andorra
3600 4484 -2208988800 0: Europe/Madrid
3600 4876 -2208988800 0: Africa/Ceuta
3600 4884 -2821653516 3600 -2208988800 0: Europe/Gibraltar
7200 -1512 -2208988800 0: Asia/Damascus
7200 -1424 -2208988800 0: Asia/Amman
7200 -1320 -2840149320 0: Asia/Beirut
7200 -1254 -2840148014 -1240 -2208988800 0: Asia/Jerusalem Asia/Tel_Aviv Israel
7200 -1240 -2840148040 -1200 -2208988800 0: Europe/Zaporozhye
7200 -1223 -2208988800 0: Asia/Hebron
7200 -1072 -2208988800 0: Asia/Gaza
7200 -948 -2208988800 0: Asia/Famagusta
7200 -808 -2208988800 0: Asia/Nicosia Europe/Nicosia
7200 -620 -2208988800 0: Africa/Blantyre Africa/Bujumbura Africa/Gaborone Africa/Harare Africa/Kigali Africa/Lubumbashi
 Africa/Lusaka Africa/Maputo
7200 -608 -2208988800 0: Africa/Khartoum
7200 -388 -2208988800 0: Africa/Juba
7200 -309 -2208988800 0: Africa/Cairo Egypt
7200 -124 -2208988800 0: Europe/Kiev Europe/Kyiv
7200 0: EET Etc/GMT-2
7200 280 -2840148020 300 -2208988800 0: Europe/Chisinau Europe/Tiraspol
7200 480 -2458174920 1800 -2208988800 0: Africa/Johannesburg Africa/Maseru Africa/Mbabane
7200 936 -2208988800 0: Europe/Bucharest
7200 1124 -2840149036 2160 -2208988800 0: Europe/Vilnius
7200 1211 -2208988800 0: Europe/Helsinki Europe/Mariehamn
7200 1260 -2208988800 0: Europe/Tallinn
7200 1406 -2208988800 0: Europe/Riga
7200 1508 -2208988800 0: Europe/Athens
7200 1604 -2840146580 184 -2369527016 0: Europe/Sofia
7200 1848 -2500943352 3600 -2208988800 0: Europe/Uzhgorod
7200 2280 -2422059720 3600 -2208988800 0: Europe/Kaliningrad
7200 3096 -2458172304 1800 -2208988800 0: Africa/Windhoek
7200 4036 -2208988800 0: Africa/Tripoli Libya
10800 -1568 -2208988800 0: Asia/Bahrain Asia/Qatar
10800 -1128 -2208988800 0: Europe/Kirov
10800 -412 -2208988800 0: Antarctica/Syowa Asia/Aden Asia/Kuwait Asia/Riyadh
10800 0: Etc/GMT-3
10800 140 -2524532404 144 -2208988800 0: Asia/Baghdad
10800 140 -2208988800 0: Europe/Volgograd
10800 1783 -2208988800 0: Europe/Moscow W-SU
10800 1964 -2208988800 0: Africa/Addis_Ababa Africa/Asmara Africa/Asmera Africa/Dar_es_Salaam Africa/Djibouti
 Africa/Kampala Africa/Mogadishu Africa/Nairobi Indian/Antananarivo Indian/Comoro Indian/Mayotte
10800 2616 -2840151624 2640 -2208988800 0: Europe/Simferopol
10800 3848 -2840151536 3784 -2208988800 0: Asia/Istanbul Europe/Istanbul Turkey
10800 4184 -2840151616 4200 -2208988800 0: Europe/Minsk
12600 256 -2208988800 0: Asia/Tehran Iran
14400 0: Etc/GMT-4
14400 600 -2208988800 0: Indian/Mauritius
14400 1128 -2208988800 0: Asia/Dubai Asia/Muscat Indian/Mahe Indian/Reunion
14400 2380 -2208988800 0: Europe/Samara
14400 2436 -2208988800 0: Asia/Baku
14400 2784 -2208988800 0: Europe/Ulyanovsk
14400 2868 -2208988800 0: Europe/Astrakhan
14400 3342 -2208988800 0: Europe/Saratov
14400 3649 -2208988800 0: Asia/Tbilisi
14400 3720 -2208988800 0: Asia/Yerevan
16200 -408 -2524540008 1800 -2208988800 0: Asia/Kabul
18000 0: Etc/GMT-5
18000 360 -2208988800 0: Indian/Kerguelen Indian/Maldives
18000 1369 -2208988800 0: Asia/Tashkent
18000 1488 -2208988800 0: Asia/Dushanbe
18000 1908 -2208988800 0: Asia/Karachi
18000 1927 -2208988800 0: Asia/Samarkand
18000 2288 -2208988800 0: Asia/Qyzylorda
18000 3447 -2208988800 0: Asia/Yekaterinburg
18000 3988 -2208988800 0: Asia/Ashgabat Asia/Ashkhabad
18000 4280 -2208988800 0: Asia/Aqtobe
18000 5536 -2208988800 0: Asia/Atyrau
18000 5676 -2208988800 0: Asia/Oral
18000 5936 -2208988800 0: Asia/Aqtau
18000 18000 -2208988800 0: Antarctica/Mawson
19800 -1408 -3645235808 -1400 -3155695330 530 -2208988800 0: Asia/Calcutta Asia/Kolkata
19800 636 -2840160592 628 -2208988800 0: Asia/Colombo
20700 224 -2208988800 0: Asia/Kathmandu Asia/Katmandu
21600 -100 -2524543700 400 -2208988800 0: Asia/Dacca Asia/Dhaka
21600 0: Etc/GMT-6
21600 84 -2208988800 0: Asia/Thimbu Asia/Thimphu
21600 580 -2208988800 0: Antarctica/Vostok Asia/Kashgar Asia/Urumqi
21600 3132 -2208988800 0: Asia/Almaty
21600 3696 -2208988800 0: Asia/Bishkek
21600 3990 -2208988800 0: Asia/Omsk
21600 4220 -2208988800 0: Indian/Chagos
21600 6332 -2208988800 0: Asia/Qostanay
23400 313 -2208988800 0: Asia/Rangoon Asia/Yangon Indian/Cocos
25200 -1040 -2208988800 0: Asia/Pontianak
25200 -432 -2208988800 0: Asia/Jakarta
25200 -390 -2208988800 0: Asia/Ho_Chi_Minh Asia/Saigon
25200 0: Etc/GMT-7
25200 1076 -2208988800 0: Asia/Bangkok Asia/Phnom_Penh Asia/Vientiane Indian/Christmas
25200 2914 -2208988800 0: Asia/Krasnoyarsk
25200 3204 -2208988800 0: Asia/Hovd
25200 4272 -2208988800 0: Asia/Novokuznetsk
25200 4809 -2208988800 0: Asia/Tomsk
25200 5100 -2208988800 0: Asia/Barnaul
25200 5300 -2208988800 0: Asia/Novosibirsk
25200 25200 -2208988800 0: Antarctica/Davis
28800 -360 -2335248360 0: Asia/Taipei
28800 -343 -2208988800 0: Asia/Chongqing Asia/Chungking Asia/Harbin Asia/Shanghai PRC
28800 0: Etc/GMT-8
28800 144 -2208988800 0: Asia/Makassar Asia/Ujung_Pandang
28800 996 -2337925404 0: Australia/Perth Australia/West
28800 1320 -2208988800 0: Asia/Choibalsan
28800 1398 -2208988800 0: Asia/Hong_Kong Hongkong
28800 1550 -2208988800 0: Asia/Macao Asia/Macau
28800 2320 -2208988800 0: Asia/Brunei Asia/Kuching
28800 3148 -2208988800 0: Asia/Ulaanbaatar Asia/Ulan_Bator
28800 3775 -2208988800 0: Asia/Irkutsk
28800 3875 -2208988800 0: Asia/Kuala_Lumpur Asia/Singapore Singapore
28800 86160 -3944620800 -240 -2229321840 0: Asia/Manila
31500 572 -2337928528 0: Australia/Eucla
32400 -1368 -2208988800 0: Asia/Jayapura
32400 -1139 -2587712400 0: Asia/Tokyo Japan
32400 -133 -2208988800 0: Asia/Khandyga
32400 0: Etc/GMT-9
32400 1262 -2208988800 0: Asia/Yakutsk
32400 1928 -2208988800 0: Asia/Seoul ROK
32400 2220 -2208988800 0: Asia/Pyongyang
32400 2260 -2208988800 0: Asia/Dili
32400 5168 -2208988800 0: Asia/Chita
32400 86524 -3944624400 124 -2208988800 0: Pacific/Palau
34200 252 -2364108948 -1800 -2314953000 1800 -2230189200 0: Australia/Broken_Hill Australia/Yancowinna
34200 940 -2364111860 1800 -2230189200 0: Australia/Adelaide Australia/South
34200 2800 -2364110000 1800 -2230189200 0: Australia/Darwin Australia/North
36000 -728 -2366791928 0: Australia/Brisbane Australia/Queensland
36000 -292 -2364113092 0: Australia/ACT Australia/Canberra Australia/NSW Australia/Sydney
36000 0: Etc/GMT-10
36000 244 -2366790956 0: Australia/Lindeman
36000 644 -2345795356 0: Australia/Currie Australia/Hobart Australia/Tasmania
36000 680 -2840176808 688 -2366790512 0: Antarctica/DumontDUrville Pacific/Chuuk Pacific/Port_Moresby Pacific/Truk
 Pacific/Yap
36000 1208 -2364111592 0: Australia/Melbourne Australia/Victoria
36000 1626 -2208988800 0: Asia/Ust-Nera
36000 4349 -2208988800 0: Asia/Vladivostok
36000 36000 -2214259200 0: Antarctica/Macquarie
36000 87660 -3944628000 1260 -2208988800 0: Pacific/Guam Pacific/Saipan
37800 -380 -2364116780 1800 -2208988800 0: Australia/LHI Australia/Lord_Howe
39600 -796 -2208988800 0: Pacific/Efate
39600 -712 -2208988800 0: Pacific/Norfolk
39600 -348 -2208988800 0: Pacific/Noumea
39600 0: Etc/GMT-11
39600 1212 -2208988800 0: Pacific/Guadalcanal Pacific/Pohnpei Pacific/Ponape
39600 2264 -2840182424 4288 -2366794112 3600 -2208988800 0: Pacific/Bougainville
39600 2708 -2208988800 0: Asia/Srednekolymsk
39600 3408 -2208988800 0: Asia/Magadan
39600 5352 -2208988800 0: Asia/Sakhalin
39600 39600 -2208988800 0: Antarctica/Casey
39600 86884 -3944631600 484 -2208988800 0: Pacific/Kosrae
43200 0: Etc/GMT-12
43200 256 -2208988800 0: Pacific/Fiji
43200 604 -2208988800 0: Asia/Anadyr
43200 1256 -3192437344 1800 -2208988800 0: Antarctica/McMurdo Antarctica/South_Pole NZ Pacific/Auckland
43200 1676 -2208988800 0: Pacific/Funafuti Pacific/Majuro Pacific/Tarawa Pacific/Wake Pacific/Wallis
43200 3040 -2208988800 0: Kwajalein Pacific/Kwajalein
43200 3140 -2208988800 0: Pacific/Nauru
43200 5124 -2208988800 0: Asia/Kamchatka
45900 1872 -3192439428 1800 -2208988800 0: NZ-CHAT Pacific/Chatham
46800 0: Etc/GMT-13
46800 1616 -2445512400 88016 -2208988800 0: Pacific/Apia
46800 2448 -2208988800 0: Pacific/Tongatapu
46800 46800 -2208988800 0: Pacific/Enderbury Pacific/Kanton
46800 87896 -2208988800 0: Pacific/Fakaofo
50400 0: Etc/GMT-14
50400 88160 -2208988800 0: Pacific/Kiritimati
"""
